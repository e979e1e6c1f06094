"""Calls of one client that connect, one after the other, until ``close`` ends them.

A call has a turn from when it finds that it must connect until it is connected. Who
closes the client ends all turns there are: such a call is cancelled, cleans up as one
that its caller cancels, and raises `ConnectionClosed`. The closing has a turn as well,
so what is called from then on waits for it and begins anew.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from openenv.errors import ConnectionClosed

if TYPE_CHECKING:
    from collections.abc import Iterator

_NORMAL: Final = 1000
_CLOSED: Final = "the client was closed"


def closed_meanwhile() -> ConnectionClosed:
    """Return what a call raises whose client was closed before it was sent."""
    return ConnectionClosed(_NORMAL, _CLOSED)


def is_closed_meanwhile(error: BaseException) -> bool:
    """Tell whether `closed_meanwhile` made it."""
    return isinstance(error, ConnectionClosed) and error.args == (_NORMAL, _CLOSED)


@dataclass(eq=False, slots=True)
class _Turn:
    task: asyncio.Task[object]
    is_ended: bool = False


class Turns:
    """Hold the turns on one event loop; true while there are any."""

    def __init__(self) -> None:
        self._turns: set[_Turn] = set()
        self._last: asyncio.Future[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._turns) or not (self._last is None or self._last.done())

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Have a turn; who must not do so beside others takes a `place` as well.

        Raises:
            ConnectionClosed: The client was closed before this was left.
        """
        task = asyncio.current_task()
        assert task is not None  # a coroutine of a client runs in one
        turn, asked = _Turn(task), task.cancelling()
        self._turns.add(turn)
        try:
            yield
        except BaseException as exc:
            # As asyncio.timeout does: a cancellation of the caller's own stays one.
            if (
                turn.is_ended
                and task.uncancel() <= asked
                and isinstance(exc, asyncio.CancelledError)
            ):
                raise closed_meanwhile() from None
            raise
        finally:
            self._turns.discard(turn)

    def end_all(self) -> None:
        """End all turns; they do so once their calls have cleaned up."""
        for turn in self._turns:
            if not turn.is_ended:
                turn.is_ended = True
                turn.task.cancel()

    def place(self) -> Place:
        """Return the next place in the line; to be entered in any case."""
        before, self._last = self._last, asyncio.get_running_loop().create_future()
        return Place(before, self._last)


class Place:
    """Be a lock whose order is that of `Turns.place`, not of who enters first.

    Args:
        before: Done when who came before has left.
        left: Made done when this has been left, and who came before.
    """

    def __init__(
        self, before: asyncio.Future[None] | None, left: asyncio.Future[None]
    ) -> None:
        self._before = before
        self._left = left

    async def __aenter__(self) -> None:
        if self._before is None or self._before.done():
            return
        try:
            await asyncio.wait((self._before,))
        except BaseException:
            self._before.add_done_callback(lambda _: self._left.set_result(None))
            raise

    async def __aexit__(self, *_: object) -> None:
        self._left.set_result(None)
