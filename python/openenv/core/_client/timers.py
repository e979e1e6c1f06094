"""One timer for all connections of an event loop.

Each connection says when it wants to be ticked next; the earliest of all arms one
``call_later``. A heap entry may be out of date (its connection's deadline moved
later, or the connection is closed): then popping it costs one comparison, which is
cheaper than taking entries out, since most deadlines are never reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import math
import weakref
from typing import TYPE_CHECKING, Final, Protocol

from openenv.core._client.per_loop import PerLoop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

# A timer that fires this late means that the loop was blocked. Answers and pongs may
# lie unread in the sockets; they are read before anybody is told that time is over.
_BLOCKED_S: Final = 0.25
_READ_FIRST_S: Final = 0.02
_LEAVE_S: Final = 0.5  # what `asyncio.run` may be held up by a peer that is silent


class Timed(Protocol):
    """Be something that wants to be called at a time."""

    due: float
    """Loop-clock seconds of the entry that stands for it; infinity without one."""

    def tick(self, now: float) -> float:
        """Run what is due; return the next time, infinity for never."""

    def leave(self) -> asyncio.Future[None]:
        """Begin to close, since the loop is about to end; done when closed."""

    def abort(self) -> None:
        """Close at once."""


class LoopTimers:
    """Hold the deadlines of one loop's connections; use it on that loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[float, int, Timed]] = []
        self._serial = itertools.count()
        self._handle: asyncio.TimerHandle | None = None
        self._armed = math.inf
        self._members: weakref.WeakSet[Timed] = weakref.WeakSet()
        self._at_end: list[Callable[[], None]] = []
        self._watch = self._until_loop_ends()
        # The first step registers the generator with the loop, which closes it in
        # `shutdown_asyncgens`: the one hook that `asyncio.run` has for its end.
        with contextlib.suppress(StopIteration):
            self._watch.__anext__().send(None)

    def add(self, member: Timed) -> None:
        """Take care of a connection when the loop ends."""
        self._members.add(member)

    def at_end(self, callback: Callable[[], None]) -> None:
        """Call back when the loop ends, after its connections were closed."""
        self._at_end.append(callback)

    def arm(self, member: Timed, when: float) -> None:
        """See to it that the connection is ticked at a time, or earlier.

        Args:
            member: The connection.
            when: Loop-clock seconds; ignored unless earlier than ``member.due``.
        """
        if when >= member.due:
            return
        member.due = when
        heapq.heappush(self._heap, (when, next(self._serial), member))
        if when < self._armed:
            self._set_handle(when)

    def _set_handle(self, when: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed = when
        self._handle = self._loop.call_at(when, self._fire)

    def _fire(self) -> None:
        now = self._loop.time()
        if now - self._armed > _BLOCKED_S:
            self._armed = now
            self._handle = self._loop.call_later(_READ_FIRST_S, self._fire_now)
        else:
            self._fire_now()

    def _fire_now(self) -> None:
        self._handle, self._armed = None, math.inf
        now = self._loop.time()
        heap = self._heap
        while heap and heap[0][0] <= now:
            when, _, member = heapq.heappop(heap)
            if when == member.due:  # else a later or earlier entry stands for it
                member.due = math.inf
                self.arm(member, self._ticked(member, now))
        if heap and heap[0][0] < self._armed:
            self._set_handle(heap[0][0])

    def _ticked(self, member: Timed, now: float) -> float:
        # One that fails must not keep the others from their time.
        try:
            return member.tick(now)
        except Exception as exc:  # noqa: BLE001 - told to the loop's handler
            _tell(self._loop, exc)
            _abort(self._loop, member)
            return math.inf

    async def _until_loop_ends(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self._handle is not None:
                self._handle.cancel()
            self._heap.clear()
            await _close_all(self._loop, list(self._members))
            for callback in self._at_end:
                callback()


async def _close_all(loop: asyncio.AbstractEventLoop, members: list[Timed]) -> None:
    gone = [left for member in members if (left := _leave(loop, member)) is not None]
    if gone:
        await asyncio.wait(gone, timeout=_LEAVE_S)
    for member in members:
        _abort(loop, member)
    if gone:
        await asyncio.wait(gone, timeout=_LEAVE_S)


def _leave(
    loop: asyncio.AbstractEventLoop, member: Timed
) -> asyncio.Future[None] | None:
    try:
        return member.leave()
    except Exception as exc:  # noqa: BLE001 - told to the loop's handler
        _tell(loop, exc)
        return None


def _abort(loop: asyncio.AbstractEventLoop, member: Timed) -> None:
    try:
        member.abort()
    except Exception as exc:  # noqa: BLE001 - told to the loop's handler
        _tell(loop, exc)


def _tell(loop: asyncio.AbstractEventLoop, exc: Exception) -> None:
    loop.call_exception_handler(
        {"message": "an OpenEnv connection failed on its own", "exception": exc}
    )


_timers: Final = PerLoop(LoopTimers)


def timers_of(loop: asyncio.AbstractEventLoop) -> LoopTimers:
    """Return the running loop's timers, made at the first call."""
    return _timers.of(loop)
