"""How an error shows what a server printed: its end, bounded and printable."""

from __future__ import annotations

from typing import Final

SHOWN_LINES: Final = 50
_SHOWN_BYTES: Final = 8192


def shown(output: str) -> str:
    """Return the end of an error's sentence that shows the last output."""
    end = last_of(output)
    return f"; its last output:\n{end}" if end else "; it printed nothing"


def last_of(output: str) -> str:
    """Return the last lines of an output as an error may show them."""
    lines = output[-_SHOWN_BYTES:].split("\n")[-SHOWN_LINES:]
    text = "\n".join(_printable(line.rstrip()) for line in lines).strip("\n")
    return text.encode(errors="replace")[-_SHOWN_BYTES:].decode(errors="ignore")


def _printable(line: str) -> str:
    # A terminal would obey control characters.
    return "".join(
        each
        if each.isprintable() or each == "\t"
        else each.encode("unicode_escape").decode()
        for each in line
    )
