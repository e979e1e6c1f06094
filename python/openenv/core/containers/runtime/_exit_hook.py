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
        atexit.unregister(self._call)

    def _call(self, callback: Callable[[], None]) -> None:
        if os.getpid() == self._owner_pid:
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
