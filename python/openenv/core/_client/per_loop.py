"""One thing an event loop, made when it is first asked for."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_ValueT = TypeVar("_ValueT")


class PerLoop(Generic[_ValueT]):
    """Keep one value a loop, for as long as the loop is not closed.

    Args:
        make: Makes the value of a loop that has none.
    """

    def __init__(self, make: Callable[[asyncio.AbstractEventLoop], _ValueT]) -> None:
        self._make = make
        self._values: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _ValueT] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()

    def of(self, loop: asyncio.AbstractEventLoop) -> _ValueT:
        """Return the value of the running loop."""
        if loop in self._values:
            return self._values[loop]
        with self._lock:
            # Values hold their keys alive, so ended loops are dropped here.
            for other in [known for known in self._values if known.is_closed()]:
                del self._values[other]
            made = self._values[loop] = self._make(loop)
            return made

    def put(self, loop: asyncio.AbstractEventLoop, value: _ValueT) -> None:
        """Let a loop have another value from now on."""
        self._values[loop] = value
