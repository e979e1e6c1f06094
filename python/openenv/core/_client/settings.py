"""What a client was told: where to, how long, how much. Read anew at every call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MODES: Final = ("simulation", "production")
_MODE_VARIABLE: Final = "OPENENV_CLIENT_MODE"
_FORBIDDEN_IN_HEADERS: Final = frozenset("\r\n\0")


@dataclass(slots=True, kw_only=True)
class Settings:
    """Hold one client's settings; times are in seconds, None means no limit.

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


def checked_headers(
    headers: Sequence[tuple[str, str]],
) -> tuple[tuple[str, str], ...]:
    """Return headers that cannot break out of their line.

    Raises:
        ValueError: A name or value holds CR, LF or NUL; the caller's fault.
    """
    for name, value in headers:
        if _FORBIDDEN_IN_HEADERS & {*name, *value}:
            msg = f"header {name!r} holds a line break or NUL"
            raise ValueError(msg)
    return tuple(headers)
