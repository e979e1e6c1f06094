"""Run a command in this process group, and end the group when the parent is gone.

    python -I -S _guard.py COMMAND...

Standard input is a pipe that the parent never writes to: the end of it says that the
parent is gone, however that came about, `kill -9` included. The command reads an empty
standard input. The guard ends as the command does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Final

_GRACE_S: Final = 10.0  # as long as a provider gives


def main() -> int:
    """Run the command and return its exit code."""
    # A handler, not SIG_IGN, which the command would inherit: it alone ends by these,
    # and the guard tells how.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)  # noqa: S603 - the parent's
    threading.Thread(target=_end_with_parent, daemon=True).start()
    code = process.wait()
    if _parent_is_gone.is_set():  # nobody else ends what the command has left
        os.killpg(0, signal.SIGKILL)
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
    os.killpg(0, signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.killpg(0, signal.SIGKILL)


_parent_is_gone: Final = threading.Event()
if __name__ == "__main__":
    sys.exit(main())
