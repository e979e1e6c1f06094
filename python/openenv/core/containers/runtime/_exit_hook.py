"""What is done when this process ends with something still running."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from typing_extensions import override

from openenv.core.containers.runtime._owner_guard import strays_guard

if TYPE_CHECKING:
    from collections.abc import Callable


class ExitHook:
    """Call something at the interpreter's exit, from `set` until `clear`.

    A forked child inherits the hook, but not what runs: there it does nothing.
    """

    def __init__(self) -> None:
        self._owner_pid: int | None = None

    def set(self, callback: Callable[[], None]) -> None:
        """Have it called."""
        self._owner_pid = os.getpid()
        atexit.register(self._call, callback)

    def clear(self) -> None:
        """Have nothing called any more."""
        self._owner_pid = None
        atexit.unregister(self._call)

    @property
    def is_another_process(self) -> bool:
        """Whether what runs was started by the process that forked this one."""
        return self._owner_pid not in {None, os.getpid()}

    def _call(self, callback: Callable[[], None]) -> None:
        if not self.is_another_process:
            callback()


class EngineExitHook(ExitHook):
    """Have strays removed, too, where a killed process can call nothing."""

    @override
    def set(self, callback: Callable[[], None]) -> None:
        super().set(callback)
        strays_guard.hold(self)

    @override
    def clear(self) -> None:
        super().clear()
        strays_guard.let_go(self)
