"""Does a server answer at an address, and is that address this machine's?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openenv.core._client.dial import parse_address
from openenv.core._client.http import ask_status
from openenv.core._client.io_thread import run_in_background
from openenv.core._client.proxy import is_loopback
from openenv.core.generic_client import GenericEnvClient

if TYPE_CHECKING:
    from collections.abc import Mapping

_WAY: Final = ("headers", "proxy", "verify", "cert")  # what the client will go by, too
_OK: Final = 200
_ANY: Final = "0.0.0.0"  # noqa: S104 - what a server listens on, told as its address


def is_available(base_url: str, timeout_s: float, options: Mapping[str, Any]) -> bool:
    """Tell whether a server answers 200 on ``/health``, or else on its root.

    Args:
        base_url: The server's.
        timeout_s: Seconds that either may take.
        options: The client's; its headers, proxy and TLS are used here.
    """
    way = {name: options[name] for name in _WAY if name in options}
    client = GenericEnvClient(base_url, connect_timeout_s=timeout_s, **way)
    return any(
        run_in_background(ask_status(client._settings, path)) == _OK  # noqa: SLF001 - ours
        for path in ("/health", "/")
    )


def is_local(base_url: str) -> bool:
    """Tell whether an address is the machine's own."""
    host = parse_address(base_url).host
    return host == _ANY or is_loopback(host)
