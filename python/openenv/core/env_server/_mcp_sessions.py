"""Sessions that HTTP requests hold by their id, and a WebSocket may join.

    openenv/session/create --> held --(/ws?session_id=...)--> attached
                                 |  <------- detach ---------    |
          openenv/session/close, |                               | close: at detach
          or idle too long       v                               v
                               gone                            gone

A requester that goes away does not end what it asked for: the session is not its own.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from openenv.errors import SessionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from openenv.core.env_server._hosted import Hosted
    from openenv.core.env_server._sessions import Session

# Nothing tells that the holder of an id is gone.  An agent may think for long between
# two calls; a slot must come free in reasonable time.  `session_timeout` sets another.
HELD_IDLE_S: Final = 900.0
# How long a request under way may hold up the end of its session.
CLOSE_PATIENCE_S: Final = 5.0


class HeldSession:
    """One session; its requests are served one at a time, from wherever they come."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.attached = False
        self.closing = False
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._ended = False
        self._turn = asyncio.Lock()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended, 0.0 while one is served."""
        return self.session.idle_s

    @property
    def step_count(self) -> int:
        """How many steps the session has served."""
        return self.session.step_count

    @step_count.setter
    def step_count(self, value: int) -> None:
        self.session.step_count = value

    async def run(
        self,
        function: Callable[[Hosted], Any],
        coroutine: Callable[[Hosted], Coroutine[Any, Any, Any]],
    ) -> Any:
        """Serve one request in its turn; it goes on when the caller is cancelled.

        Raises:
            SessionNotFoundError: the session was closed before its turn.
        """
        task = asyncio.create_task(self._in_turn(function, coroutine))
        return await asyncio.shield(task)

    async def end(self, end: Callable[[Session], asyncio.Task[None]]) -> None:
        """Let the request under way finish, if it does soon, then end the session."""
        try:
            await asyncio.wait_for(self._turn.acquire(), CLOSE_PATIENCE_S)
        except TimeoutError:  # it is cancelled, or abandoned, as that of a WebSocket
            self._ended = True
            end(self.session)
            return
        self._ended = True
        try:
            await asyncio.wait({end(self.session)})
        finally:
            self._turn.release()

    async def _in_turn(
        self,
        function: Callable[[Hosted], Any],
        coroutine: Callable[[Hosted], Coroutine[Any, Any, Any]],
    ) -> Any:
        async with self._turn:
            if self._ended:
                raise _unknown(self.session.id)
            return await self.session.run(function, coroutine)


class HeldSessions:
    """All sessions that are held by their id.

    Args:
        end: ends a session and returns the task that waits for it.
        forget: gives up a session whose event loop is closed.
    """

    def __init__(
        self,
        end: Callable[[Session], asyncio.Task[None]],
        forget: Callable[[Session], None],
    ) -> None:
        self._end = end
        self._forget = forget
        self._held: dict[str, HeldSession] = {}
        self._endings: set[asyncio.Task[None]] = set()

    def hold(self, session: Session) -> HeldSession:
        """Keep an open session until it is closed or idle for too long."""
        held = self._held[session.id] = HeldSession(session)
        if session.timeout_s is None:
            session.timeout_s = HELD_IDLE_S
        session.watch(partial(self._expired, held))
        return held

    def find(self, session_id: str) -> HeldSession:
        """Return the session of that id.

        Raises:
            SessionNotFoundError: there is none.
        """
        self._forget_those_of_closed_loops()
        held = self._held.get(session_id)
        if held is None:
            raise _unknown(session_id)
        if held.loop is not asyncio.get_running_loop():
            text = (
                f"Session {session_id} belongs to another event loop; ask on one loop, "
                "as in `with TestClient(app) as client`"
            )
            raise SessionNotFoundError(session_id, text)
        return held

    def attach(self, session_id: str) -> HeldSession:
        """Give the session to a WebSocket until `detach`.

        Raises:
            SessionNotFoundError: there is none, or another one has it.
        """
        held = self.find(session_id)
        if held.attached:
            text = f"Session {session_id} already has an attached WebSocket"
            raise SessionNotFoundError(session_id, text)
        held.attached = True
        return held

    def detach(self, held: HeldSession) -> None:
        """Take the session back; it ends now if it was to be closed meanwhile."""
        held.attached = False
        if held.closing:
            self._start_ending(held)

    async def close(self, session_id: str) -> dict[str, Any]:
        """Close a session, at once or as soon as its WebSocket is gone.

        Returns:
            What upstream tells of it.

        Raises:
            SessionNotFoundError: there is none.
        """
        held = self.find(session_id)
        if held.attached:
            held.closing = True
            return {"session_id": session_id, "closed": False, "closing": True}
        await asyncio.shield(self._start_ending(held))
        return {"session_id": session_id, "closed": True}

    def drop(self, held: HeldSession) -> None:
        """Begin to end a session that nobody knows of."""
        if self._held.get(held.session.id) is held:
            self._start_ending(held)

    def close_all(self) -> None:
        """Begin to end every session, whatever it does."""
        for held in self._held.values():
            self._end(held.session)
        self._held.clear()

    def _forget_those_of_closed_loops(self) -> None:
        for held in [each for each in self._held.values() if each.loop.is_closed()]:
            del self._held[held.session.id]
            self._forget(held.session)

    def _expired(self, held: HeldSession) -> None:
        if not held.attached:
            self._start_ending(held)

    def _start_ending(self, held: HeldSession) -> asyncio.Task[None]:
        del self._held[held.session.id]
        task = asyncio.create_task(held.end(self._end))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
        return task


def _unknown(session_id: str) -> SessionNotFoundError:
    text = f"Unknown session_id: {session_id}"
    return SessionNotFoundError(session_id, text)
