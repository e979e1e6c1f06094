"""Run a command in this process group, and end the group when the parent is gone.

    python -I -S _guard.py COMMAND...

Standard input is a pipe that the parent never writes to: the end of it says that the
parent is gone, however that came about, `kill -9` included. The command reads an empty
standard input. The guard ends as the command does.

What has left the group (`setpgid`, `setsid`) hears nothing that the group is sent, and
is known as the command's only while what started it lives. So signals go to the guard:
SIGTERM it hands on, first to those that have left and then to the group; on SIGUSR1 it
kills them in that order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_GRACE_S: Final = 10.0  # as long as a provider gives


def main() -> int:
    """Run the command and return its exit code."""
    # A handler, not SIG_IGN, which the command would inherit: it alone ends by these,
    # and the guard tells how.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: _ask_all())
    signal.signal(signal.SIGUSR1, lambda *_: _end_all())
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)  # noqa: S603 - the parent's
    threading.Thread(target=_end_with_parent, daemon=True).start()
    code = process.wait()
    if _parent_is_gone.is_set():  # nobody else ends what the command has left
        _end_all()
    if code < 0:
        _end_by(-code)
    return code


def _end_by(number: int) -> None:
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _end_with_parent() -> None:
    while os.read(0, 1024):
        continue
    _parent_is_gone.set()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    _end_all()


def _ask_all() -> None:
    signal.signal(signal.SIGTERM, lambda *_: None)  # it comes back with the group's
    _tell_those_who_left(signal.SIGTERM)
    os.killpg(0, signal.SIGTERM)


def _end_all() -> None:
    _tell_those_who_left(signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)


def _tell_those_who_left(number: signal.Signals) -> None:
    for pid in [*_descendants(os.getpid())]:
        with suppress(OSError):
            if os.getpgid(pid) != os.getpgrp():
                os.kill(pid, number)


def _descendants(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, path.read_text(encoding="ascii").split()):
                yield child
                yield from _descendants(child)


_parent_is_gone: Final = threading.Event()
if __name__ == "__main__":
    sys.exit(main())
