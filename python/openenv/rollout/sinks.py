"""Where the records of a rollout go.

The file holds whole lines at every moment: one `write` a line on a descriptor opened
with `O_APPEND`, and what a failing `write` left of a line is cut off again. One process
writes a file at a time.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import msgspec

from openenv.rollout.errors import InvalidRollout, OutputFailed

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from openenv.rollout.records import EpisodeRecord

# Readable by all as far as the umask allows: results are not secrets.
_FILE_MODE = 0o666


class JsonLinesFile:
    """Append one JSON line a record to a file; use it as a context manager.

    Args:
        path: made when missing; kept and appended to when there.

    Raises:
        InvalidRollout: the file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            self._descriptor = os.open(path, flags, _FILE_MODE)
        except OSError as error:
            message = f"cannot write to {path}: {error.strerror}"
            raise InvalidRollout(message) from None
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self._closed = False
        self._prefix = b"\n" if self._ends_inside_a_line() else b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, record: EpisodeRecord) -> None:
        """Append one line.

        Raises:
            OutputFailed: the disk is full or gone; the line is not in the file.
        """
        line = self._prefix + msgspec.json.encode(record) + b"\n"
        size = self._size()
        try:
            self._write_all(line)
        except OSError as error:
            self._cut_back_to(size)
            message = f"cannot write to {self._path}: {error.strerror}"
            raise OutputFailed(message) from error
        self._prefix = b""

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)

    def _write_all(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _cut_back_to(self, size: int) -> None:
        if self._regular:
            # The disk that refused the line may refuse this too; the error that is
            # about to be raised already says so.
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)

    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size if self._regular else 0

    def _ends_inside_a_line(self) -> bool:
        size = self._size()
        return size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
