"""How an error shows what a server printed."""

from __future__ import annotations

from typing import Final

SHOWN_LINES: Final = 50


def shown(output: str) -> str:
    """Return the end of an error's sentence that shows the last output."""
    return f"; its last output:\n{output}" if output else "; it printed nothing"
