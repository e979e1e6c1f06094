"""On which event loop a client lives, for callers that await and callers that block.

A connection belongs to the loop that opened it. A client that has none yet, or
whose loop has ended, moves to where it is used next: to the running loop of an
awaiting caller, to the process's I/O loop for a blocking one. While its loop serves
calls it stays there, and calls from elsewhere are handed over, so a client may be
shared by sync and async code and by threads. A call that is handed over ends in its
own time also where that loop is blocked.
"""

# ruff: noqa: ANN401 - answers have the type that the decoder gives them

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from openenv.core._client.io_thread import (
    GRACE_S,
    io_loop,
    is_alive,
    is_io_loop,
    keep_parents,
    run_on,
)
from openenv.core._client.to_the_end import to_the_end
from openenv.errors import ConnectionClosed, RequestTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from openenv.core._client.link import Call, Link

_ResultT = TypeVar("_ResultT")
_GOING_AWAY: Final = 1001
_LOOP_ENDED: Final = "the event loop that its connection belonged to has ended"


class Home:
    """Own one client's link, and bring calls to the loop it lives on.

    Args:
        link: A new link.
        on_thread: Whether it lives on the I/O thread in any case, so that the
            connection is served while the caller's loop is blocked.
    """

    def __init__(self, link: Link, *, on_thread: bool = False) -> None:
        self.link = link
        self._on_thread = on_thread
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def perform(self, call: Call) -> Coroutine[Any, Any, Any]:
        """Return the coroutine that makes a call from the running loop.

        To be awaited at once; errors as `Link.perform`.
        """
        loop = asyncio.get_running_loop()
        if loop is self._loop or self._settle(loop) is loop:
            return self.link.perform(call)
        return self._hand_over_in_time(call)

    def perform_blocking(self, call: Call) -> Any:
        """Make a call from code that may block; errors as `Link.perform`.

        Raises:
            RuntimeError: The link lives on the loop that runs in this very thread.
            ConnectionClosed: The loop ended under the call.
        """
        loop = self._settle(None)
        limit_s = self._limit_s(loop, call)
        late = None if limit_s is None else RequestTimeout(call.op, limit_s)
        try:
            return run_on(loop, self.link.perform_later(call, limit_s), late)
        except concurrent.futures.CancelledError:
            raise ConnectionClosed(_GOING_AWAY, _LOOP_ENDED) from None

    async def run(
        self, method: Callable[[], Coroutine[Any, Any, _ResultT]]
    ) -> _ResultT:
        """Run one of the link's coroutine methods where the link lives."""
        loop = asyncio.get_running_loop()
        if self._settle(loop) is loop:
            return await method()
        return await self._hand_over(method())

    async def close(self) -> None:
        """Close the link where it lives, whether or not the caller is cancelled."""
        if not self.is_connected():
            self.link.forget()
            return
        loop = asyncio.get_running_loop()
        if self._settle(loop) is loop:
            await self.link.close()
        else:
            await to_the_end(self._hand_over(self.link.close()))

    def refuse_own_loop(self) -> None:
        """Refuse to block the very loop that has to serve the call.

        Raises:
            RuntimeError: The link's connection belongs to this thread's running loop.
        """
        running = asyncio._get_running_loop()  # noqa: SLF001 - documented
        if running is not None and running is self._loop and self.link.is_in_use:
            raise RuntimeError(
                "the client is connected on the event loop that runs in this thread, "
                "so a blocking call would never end; await the client's method instead"
            )

    def is_connected(self) -> bool:
        """Tell whether the link has a connection on a loop that serves calls."""
        with self._lock:
            loop = self._loop
            if loop is None or not is_alive(loop, self._pid):
                self._leave()
            return self.link.is_in_use

    def abort_soon(self) -> bool:
        """Cut an open connection off from any thread; tell whether there was one."""
        connection, loop = self.link.connection, self._loop
        if connection is None or connection.is_lost or loop is None:
            return False
        if self._pid != os.getpid():
            keep_parents(connection)
            return False
        if is_alive(loop, self._pid):
            loop.call_soon_threadsafe(connection.abort)
        return True

    def _settle(
        self, wanted: asyncio.AbstractEventLoop | None
    ) -> asyncio.AbstractEventLoop:
        if self._on_thread:
            wanted = None
        with self._lock:
            loop = self._loop
            if loop is wanted and loop is not None:
                return loop
            if loop is not None and self.link.is_in_use and is_alive(loop, self._pid):
                return loop
            home = io_loop() if wanted is None else wanted
            if home is not loop:
                self._leave()
                self._loop, self._pid = home, os.getpid()
            return home

    def _leave(self) -> None:
        connection, loop = self.link.connection, self._loop
        self.link.leave_loop(_LOOP_ENDED)
        self._loop = None
        if connection is None or loop is None:
            return
        if self._pid != os.getpid():
            keep_parents(connection)
        elif not loop.is_closed():
            # The loop stands still; should it run again, it finds this to do.
            loop.call_soon_threadsafe(connection.abort)

    async def _hand_over_in_time(self, call: Call) -> Any:
        limit_s = self._limit_s(self._loop, call)
        handed_over = self._hand_over(self.link.perform_later(call, limit_s))
        if limit_s is None:
            return await handed_over
        limit = asyncio.timeout(limit_s + GRACE_S)
        try:
            async with limit:
                return await handed_over
        except TimeoutError:
            if limit.expired():
                raise RequestTimeout(call.op, limit_s) from None
            raise

    def _limit_s(
        self, loop: asyncio.AbstractEventLoop | None, call: Call
    ) -> float | None:
        # Where that loop is blocked, nobody there keeps a deadline of the link's. The
        # I/O loop never is.
        if loop is None or is_io_loop(loop):
            return None
        return self.link.limit_s(call)

    async def _hand_over(self, coroutine: Coroutine[Any, Any, _ResultT]) -> _ResultT:
        loop = self._loop
        if loop is None:
            coroutine.close()
            raise RuntimeError(_LOOP_ENDED)
        return await hand_over(loop, coroutine)


async def hand_over(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, _ResultT]
) -> _ResultT:
    """Run a coroutine on a loop of another thread and await its result.

    Raises:
        ConnectionClosed: That loop ended under it.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if future.cancelled() and (task is None or not task.cancelling()):
            raise ConnectionClosed(_GOING_AWAY, _LOOP_ENDED) from None
        raise  # the caller's own cancellation
