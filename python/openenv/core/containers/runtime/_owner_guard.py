"""What a program does when this process is gone, however that came about.

A guard is a shell that waits at the end of a pipe and then becomes that program. It is
in a session of its own: what ends this process's group, or its terminal, does not reach
it. Where there is no POSIX shell, there is no guard; labels are left to go by.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from openenv.core.containers.runtime._lifeline import Lifeline

_SHELL: Final = "/bin/sh"
# The module path of this process, which may be another one's default or changed.
_REMOVE_STRAYS: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    f"from {__name__} import remove_strays_after; "
    "remove_strays_after(int(sys.argv[1]))"
)
# The engine may be about to create what the owner asked for last.
_LOOKS_AFTER_S: Final = (0.0, 1.0, 5.0)
# A server that is being ended may write for as long as it is given for that.
_REMOVE_FOLDER: Final = (
    'for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do rm -rf -- "$0"; sleep 1; done'
)

_log = logging.getLogger(__name__)


class OwnerGuard:
    """Have a program run when this process is gone, until `close`."""

    def __init__(self, *command: str) -> None:
        self._lifeline = Lifeline()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - ours
                [_SHELL, "-c", 'read -r _; exec "$@"', "sh", *command],
                stdin=self._lifeline.read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            self._lifeline.close()
            raise
        finally:
            self._lifeline.hand_over()

    @property
    def is_alive(self) -> bool:
        """Whether it still waits."""
        return self._process.poll() is None

    def close(self) -> None:
        """Have it run no more."""
        self._process.kill()
        self._process.wait()
        self._lifeline.close()


def folder_guard(folder: str) -> OwnerGuard | None:
    """Have a folder removed when this process is gone; None where that cannot be."""
    return _guard(_SHELL, "-c", _REMOVE_FOLDER, folder)


class StraysGuard:
    """Have the strays of this process removed while somebody holds it.

    One guard serves all that this process has on engines. A forked child has a guard of
    its own.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Be as new, in a forked child."""
        self._lock = threading.Lock()
        self._holders: set[int] = set()
        self._guard: OwnerGuard | None = None

    def hold(self, holder: object) -> None:
        """Begin, unless it is there."""
        with self._lock:
            self._holders.add(id(holder))
            if self._guard is None or not self._guard.is_alive:
                path = [str(Path(folder).absolute()) for folder in sys.path]
                command = [sys.executable, "-c", _REMOVE_STRAYS, str(os.getpid())]
                self._guard = _guard(*command, *path)

    def let_go(self, holder: object) -> None:
        """End when nobody holds it."""
        with self._lock:
            self._holders.discard(id(holder))
            if self._guard is not None and not self._holders:
                self._guard.close()
                self._guard = None


def remove_strays_after(owner_pid: int) -> None:
    """Wait until the parent of this process is gone, and remove its strays."""
    from openenv.core.containers.runtime.strays import (  # noqa: PLC0415 - needs the SDK
        remove_strays,
    )

    while os.getppid() == owner_pid:  # its pipes are closed before it has ended
        time.sleep(0.01)
    for pause_s in _LOOKS_AFTER_S:
        time.sleep(pause_s)
        remove_strays()


def _guard(*command: str) -> OwnerGuard | None:
    if not sys.executable or not Path(_SHELL).exists():
        return None
    try:
        return OwnerGuard(*command)
    except OSError as exc:
        _log.warning("nothing is removed if this process is killed: %s", exc)
        return None


strays_guard: Final = StraysGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=strays_guard.forget)
