"""Which request an answer belongs to.

Replies carry no id, so order is all there is: one request is with the server at a time,
others wait here, and an answer belongs to the one that was sent. A request whose caller
gave up stays *owed* until its answer has come, so that no later request gets it; one
that waited is never sent::

    submit ──> waiting ──next──> sent ──answered──> its caller
                  │                │
             abandon, expire   abandon, expire
                  v                v
                gone             owed ──answered──> nobody
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from openenv.errors import LimitExceeded

if TYPE_CHECKING:
    import asyncio

    from openenv.core._baseline.decoder import Decoder

# Far above any sensible `gather` on one environment; a loop that forgets to await gets
# an error before it fills the memory.
MAX_WAITING: Final = 1024


@dataclass(slots=True, eq=False)
class Call:
    """Be one request; ``future`` is None where nobody waits for its answer."""

    op: str
    text: bytes
    future: asyncio.Future[Any] | None
    decoder: Decoder
    deadline: float
    timeout_s: float


class Calls:
    """Hold the requests of one connection, in the order in which they were made."""

    def __init__(self) -> None:
        self.sent: Call | None = None
        """The request that the server has yet to answer."""
        self._waiting: deque[Call] = deque()

    @property
    def outstanding(self) -> list[Call]:
        """Return the requests that somebody waits for."""
        sent = [self.sent] if self.sent is not None else []
        return [call for call in (*sent, *self._waiting) if call.future is not None]

    @property
    def owed(self) -> int:
        """Return how many answers nobody waits for: none or one."""
        return int(self.sent is not None and self.sent.future is None)

    @property
    def next_deadline(self) -> float:
        """Return the earliest deadline; infinity for none."""
        return min((call.deadline for call in self.outstanding), default=math.inf)

    def submit(self, call: Call) -> None:
        """Take a request.

        Raises:
            LimitExceeded: Too many wait; nothing was taken.
        """
        if self.sent is not None and len(self._waiting) >= MAX_WAITING:
            msg = f"{MAX_WAITING} requests already wait in this session"
            raise LimitExceeded(msg, MAX_WAITING + 1, MAX_WAITING)
        self._waiting.append(call)

    def next(self) -> Call | None:
        """Return the request to send now, if there is one."""
        if self.sent is not None or not self._waiting:
            return None
        self.sent = self._waiting.popleft()
        return self.sent

    def answered(self) -> Call | None:
        """Return the request that an answer belongs to; None: none was made."""
        call, self.sent = self.sent, None
        return call

    def abandon(self, future: asyncio.Future[Any]) -> None:
        """Give up the request of a future."""
        self._give_up([call for call in self.outstanding if call.future is future])

    def expire(self, now: float) -> list[Call]:
        """Give up the requests whose time is over; return them."""
        return self._give_up([c for c in self.outstanding if c.deadline <= now])

    def fail(self) -> list[Call]:
        """Give up all requests, since the connection ends; as `expire`."""
        failed = self._give_up(self.outstanding)
        self.sent = None
        return failed

    def _give_up(self, calls: list[Call]) -> list[Call]:
        if self.sent is not None and self.sent in calls:
            self.sent = replace(self.sent, future=None)
        self._waiting = deque(call for call in self._waiting if call not in calls)
        return calls
