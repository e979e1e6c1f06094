"""What a client was told: where to, how long, how much. Read anew at every call."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, SupportsFloat, cast

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Sequence

MODES: Final = ("simulation", "production")
_MODE_VARIABLE: Final = "OPENENV_CLIENT_MODE"
_BYTES_IN_MB: Final = 1024 * 1024
_SECONDS: Final = "seconds >= 0 or None (no limit)"
_WAIT: Final = "seconds >= 0"
_MEBIBYTES: Final = "MiB > 0"
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 §5.6.2
# Latin-1, as HTTP has it, without control characters but the tab.
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_HANDSHAKES_OWN: Final = re.compile(
    r"sec-websocket-.*|connection|content-length|host|transfer-encoding|upgrade",
    re.IGNORECASE,
)

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
"""What a client sends with its handshake: by name, or as pairs where one repeats."""


@dataclass(slots=True, kw_only=True)
class Settings:
    """Hold one client's settings; times are in seconds.

    None means no limit, and so does infinity.
    ``base_url`` and ``ws_url`` are None while a provider has yet to say them.
    """

    base_url: str | None
    ws_url: str | None
    connect_timeout_s: float
    message_timeout_s: float | None
    max_message_bytes: int
    ping_interval_s: float | None
    ping_timeout_s: float | None
    headers: Sequence[tuple[str, str]] = ()
    proxy: bool | str | None = True
    verify: bool | str | ssl.SSLContext = True
    cert: tuple[str, ...] = ()
    on_thread: bool = False


def resolve_mode(mode: str | None) -> str:
    """Return the mode that an argument, else the environment, else nobody asks for.

    Args:
        mode: ``simulation`` or ``production`` in any case; None asks the variable
            ``OPENENV_CLIENT_MODE``.

    Raises:
        ValueError: Another word.
    """
    asked = os.getenv(_MODE_VARIABLE, MODES[0]) if mode is None else mode
    resolved = asked.lower()
    if resolved not in MODES:
        # upstream: core/env_client.py words it so
        msg = (
            f"Invalid mode: '{asked}'. Must be 'simulation' or 'production'. Set via "
            f"constructor parameter or {_MODE_VARIABLE} environment variable."
        )
        raise ValueError(msg)
    return resolved


def checked_io(io: object) -> bool:
    """Tell whether connections live on the I/O thread in any case.

    Raises:
        ValueError: ``io`` is neither ``loop`` nor ``thread``.
    """
    if io not in {"loop", "thread"}:
        msg = f"io must be 'loop' or 'thread', not {io!r}"
        raise ValueError(msg)
    return io == "thread"


def wants_loop_transports() -> bool:
    """Tell whether ``OPENENV_LOOP_TRANSPORTS=1`` keeps Rust from the sockets."""
    return os.getenv("OPENENV_LOOP_TRANSPORTS") == "1"


def checked_seconds(name: str, value: object) -> float | None:
    """Return a time in seconds, or None where that is given.

    Args:
        name: The argument, for the error.
        value: Zero or more, infinity included, or None.

    Raises:
        TypeError: It is no number; the caller's fault.
        ValueError: It is negative, NaN or beyond all floats; the caller's fault.
    """
    if value is None:
        return None
    return _seconds(name, value, _SECONDS)


def checked_wait_s(name: str, value: object) -> float:
    """Return a time in seconds that must be given; errors as above, also for None."""
    return _seconds(name, value, _WAIT)


def checked_connect_timeout_s(name: str, value: object) -> float:
    """Return a connect timeout in seconds, infinity for None; errors as above."""
    seconds = checked_seconds(name, value)
    return math.inf if seconds is None else seconds


def checked_message_bytes(name: str, size_mb: object) -> int:
    """Return a size given in MiB as bytes; what no memory can hold is no limit.

    Raises:
        TypeError: It is no number; the caller's fault.
        ValueError: It is less than a byte, NaN or beyond all floats; likewise.
    """
    size_bytes = min(_number(name, size_mb, _MEBIBYTES) * _BYTES_IN_MB, sys.maxsize)
    if not size_bytes >= 1:  # NaN is not
        msg = f"{name} must be {_MEBIBYTES}, not {size_mb}"
        raise ValueError(msg)
    return int(size_bytes)


def _seconds(name: str, value: object, what: str) -> float:
    seconds = _number(name, value, what)
    if not seconds >= 0:  # NaN is not
        msg = f"{name} must be {what}, not {seconds}"
        raise ValueError(msg)
    return seconds


def _number(name: str, value: object, what: str) -> float:
    # Not float(value) alone, which reads text too.
    if not hasattr(type(value), "__float__"):
        msg = f"{name} must be {what}, not {type(value).__name__}"
        raise TypeError(msg)
    try:
        return float(cast("SupportsFloat", value))
    except OverflowError as exc:
        msg = f"{name} must be {what}, not a number beyond all floats"
        raise ValueError(msg) from exc


def checked_headers(headers: object) -> tuple[tuple[str, str], ...]:
    """Return headers that the handshake can carry, as pairs.

    Args:
        headers: A mapping, or (name, value) pairs.

    Raises:
        TypeError: They are something else; the caller's fault, and so are all.
        ValueError: One cannot be sent, could break out of its line, or is one that the
            handshake itself writes.
    """
    pairs = tuple(headers.items() if isinstance(headers, Mapping) else _each(headers))
    for name, value in pairs:
        _check_header(name, value)
    return pairs


def _each(headers: object) -> Iterator[tuple[str, str]]:
    pairs = list(headers) if isinstance(headers, Iterable) else [headers]
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != len(("name", "value")):
            raise TypeError("headers must be a mapping or (name, value) pairs")
        name, value = pair
        yield name, value


def _check_header(name: object, value: object) -> None:
    if not isinstance(name, str):
        msg = f"header names must be str, not {type(name).__name__}"
        raise TypeError(msg)
    if not isinstance(value, str):
        msg = f"header {name!r} must be a str, not {type(value).__name__}"
        raise TypeError(msg)
    if not _HEADER_NAME.fullmatch(name):
        msg = f"header {name!r} has a name that cannot be sent"
        raise ValueError(msg)
    if not _HEADER_VALUE.fullmatch(value):
        msg = f"header {name!r} holds a line break or a character that cannot be sent"
        raise ValueError(msg)
    if _HANDSHAKES_OWN.fullmatch(name):
        msg = f"header {name!r} is the handshake's own to write"
        raise ValueError(msg)
