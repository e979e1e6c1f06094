"""What is done when the interpreter exits with something still running."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class ExitHook:
    """Call something at the interpreter's exit, from `set` until `clear`.

    A forked child inherits the hook, but not what runs: there it does nothing.
    """

    def __init__(self) -> None:
        self._owner_pid = os.getpid()

    def set(self, callback: Callable[[], None]) -> None:
        """Have it called."""
        atexit.register(self._call, callback)

    def clear(self) -> None:
        """Have nothing called any more."""
        atexit.unregister(self._call)

    def _call(self, callback: Callable[[], None]) -> None:
        if os.getpid() == self._owner_pid:
            callback()
