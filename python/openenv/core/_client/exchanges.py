"""Single messages that went out on a client's connection: whose turn, what is owed.

A link has one of these, and a new one whenever its session ends by the caller's will or
with its event loop: what waits for the turn of an old one finds out that it is ended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import contextlib

    from openenv.core._client.outside import Outside
    from openenv.core._client.raw import RawMessages


class Exchanges:
    """Keep the turn, and the answers in the order in which they were asked for."""

    def __init__(self) -> None:
        self.ended = False
        self.turn = asyncio.Lock()
        self.sent: deque[tuple[str, asyncio.Future[Any]]] = deque()

    def give_up(self) -> None:
        """Ask for no answer any more; late ones reach nobody."""
        while self.sent:
            self.sent.popleft()[1].cancel()


@dataclass(slots=True)
class Exchange:
    """Tell where a call stands that exchanges messages."""

    client: RawMessages
    carrier: Outside | Exchanges | None
    """What it was sent to, or would be."""
    turns: contextlib.AsyncExitStack | None
    """The turns that it has; None for one that a caller makes by itself."""
    has_sent: bool = False
    is_over: bool = False
    """Tasks that an override began may outlive their call."""


current_exchange: Final[ContextVar[Exchange | None]] = ContextVar(
    "exchange", default=None
)
