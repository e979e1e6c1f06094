"""Read a child's output on a thread that can be ended.

What a child has left behind may hold its output open for ever, and a thread that waits
in a `read` of a pipe cannot be woken: so it waits for that pipe and for one of its own.
"""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK_BYTES: Final = 64 * 1024
_MAX_LINE_BYTES: Final = 8 * 1024


class OutputReader:
    """Call a function with every line, until the output ends or `close`.

    Args:
        file: The end to read from; closed by `close`.
        name: The thread's.
        on_line: Called on the thread. A line that is too long comes in parts.
    """

    def __init__(self, file: int, name: str, on_line: Callable[[str], None]) -> None:
        self._file = file
        self._on_line = on_line
        self._woken, self._waking = os.pipe()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Wait until the output has ended, for so many seconds at most."""
        self._thread.join(timeout_s)

    def close(self) -> None:
        """Read no more; may be repeated."""
        if self._closed:
            return
        self._closed = True
        os.close(self._waking)
        self._thread.join()
        os.close(self._woken)
        os.close(self._file)

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._file, select.POLLIN)
        poller.register(self._woken, select.POLLIN)
        rest = b""
        while self._woken not in (ready := dict(poller.poll())):
            if self._file not in ready:
                continue
            if not (chunk := os.read(self._file, _CHUNK_BYTES)):
                break
            *lines, rest = (rest + chunk).split(b"\n")
            self._tell(lines)
            if len(rest) >= _MAX_LINE_BYTES:
                self._tell([rest])
                rest = b""
        if rest:
            self._tell([rest])

    def _tell(self, lines: list[bytes]) -> None:
        for line in lines:
            for start in range(0, len(line) or 1, _MAX_LINE_BYTES):
                part = line[start : start + _MAX_LINE_BYTES]
                self._on_line(part.decode(errors="replace").rstrip())
