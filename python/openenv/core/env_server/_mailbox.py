"""Results of other threads, brought to an event loop with one wake-up a batch."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from openenv.core.env_server._boundary import fault

if TYPE_CHECKING:
    import asyncio

_log = logging.getLogger(__name__)


class Mailbox:
    """Resolves futures of one event loop from any thread.

    Args:
        loop: the loop the futures belong to.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._letters: deque[
            tuple[asyncio.Future[Any], object, BaseException | None]
        ] = deque()
        self._signalled = False

    def post(
        self,
        future: asyncio.Future[Any],
        value: object,
        error: BaseException | None = None,
    ) -> None:
        """Resolve ``future`` soon, on its loop; callable from any thread.

        Args:
            future: one that was cancelled meanwhile is left alone.
            value: its result when ``error`` is None.
            error: its exception; `EnvironmentFault` in place of one that would
                end the loop (``SystemExit``) or that no future can hold.
        """
        if error is not None and not _can_be_held(error):
            error = fault(error)
        self._letters.append((future, value, error))
        # Two threads may both see False: one wake-up too many, never one too few,
        # because `_deliver` lowers the flag before it looks at the letters.
        if self._signalled:
            return
        self._signalled = True
        try:
            self.loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            _log.debug("a result came after its event loop was closed")

    def _deliver(self) -> None:
        self._signalled = False
        letters = self._letters
        while letters:
            future, value, error = letters.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


def _can_be_held(error: BaseException) -> bool:
    return isinstance(error, Exception) and not isinstance(error, StopIteration)
