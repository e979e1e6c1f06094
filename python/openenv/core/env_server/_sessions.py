"""The sessions of a server: capacity, activity, expiry, and how they end.

A session's life::

    open() --> reserved --> built --> serves requests --> end() --> gone
                  |                        |
                  +-- factory raised       +-- idle longer than session_timeout

Where the class allows concurrent sessions, `end` frees the slot at once; a step that
still runs on its thread, or an ``env.close()`` that hangs, makes the session
*abandoned* until ``env.close()`` has returned, and too many abandoned ones refuse new
sessions.  Where it does not, two instances must never live at a time: the slot is
freed when ``env.close()`` has returned.

Everything is called on the I/O loop; counts may be read from any thread.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from openenv.core.env_server._runner import CLOSE_TIMEOUT_S, Runner
from openenv.core.env_server.types import (
    ConcurrencyConfig,
    ServerCapacityStatus,
    SessionInfo,
)
from openenv.errors import SessionCapacityError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from openenv.core.env_server._hosted import Hosted

STOP_TIMEOUT_S = 10.0  # for environments to end when the server is stopped
SLOT_GRACE_S = 2.0  # for env.close() of a client that reconnects at once

_log = logging.getLogger(__name__)


class Session:
    """One client's environment and what is known about it.

    Attributes:
        busy: whether a request is served.
        timeout_s: how long it may be idle, None for ever; read by `watch`.
        outlived: whether a request still ran when the session was ended.
        abandoned: whether it has ended and counts as abandoned.
    """

    def __init__(self, runner: Runner, timeout_s: float | None) -> None:
        self.id: str = str(uuid4())
        self.runner = runner
        self.created_at: float = time.time()  # noqa: TID251 - SessionInfo tells wall time
        self.step_count = 0
        self.busy: bool = False
        self.outlived = False
        self.abandoned = False
        self.timeout_s = timeout_s
        self._active_s = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None

    async def run(
        self,
        function: Callable[[Hosted], Any],
        coroutine: Callable[[Hosted], Coroutine[Any, Any, Any]],
    ) -> Any:
        """Serve one request; see `Runner.start`. The session is busy meanwhile.

        Call it in a task that is cancelled only to `end` the session.
        """
        self.busy = True
        try:
            return await self.runner.start(function, coroutine)
        finally:
            self.busy = False
            self._active_s = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended, 0.0 while one is served."""
        return 0.0 if self.busy else time.monotonic() - self._active_s

    def watch(self, expired: Callable[[], None]) -> None:
        """Call ``expired`` whenever the session has been idle for its timeout.

        One timer a session, not one a request: it looks when the timeout would be
        over, and waits on for what is left.
        """
        if self.timeout_s is None:
            return
        left_s = self.timeout_s - self.idle_s
        if left_s <= 0:
            expired()
            left_s = self.timeout_s
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(left_s, self.watch, expired)

    def unwatch(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def info(self) -> SessionInfo:
        """Describe the session."""
        hosted = self.runner.hosted
        kind = type(hosted.environment).__name__ if hosted is not None else "unknown"
        ended = time.time() - self.idle_s  # noqa: TID251 - as created_at
        return SessionInfo(
            session_id=self.id,
            created_at=self.created_at,
            last_activity_at=ended,
            step_count=self.step_count,
            environment_type=kind,
        )


class Sessions:
    """All sessions of one server.

    Args:
        config: limits.
        concurrent: whether several environments may live at a time.
    """

    def __init__(self, config: ConcurrencyConfig, *, concurrent: bool) -> None:
        self.config = config
        self.abandoned = 0
        self._concurrent = concurrent
        self._open: dict[str, Session] = {}
        self._slots = 0
        self._freeing: set[asyncio.Future[None]] = set()
        self._closing: set[asyncio.Future[None]] = set()
        self._endings: set[asyncio.Task[None]] = set()
        limit = config.max_abandoned_sessions
        default = max(1, config.max_concurrent_envs // 4)
        self._max_abandoned = default if limit is None else limit

    @property
    def active(self) -> int:
        """Number of slots taken."""
        return self._slots

    def capacity(self) -> ServerCapacityStatus:
        """Return how full the server is."""
        return ServerCapacityStatus.from_counts(
            self._slots, self.config.max_concurrent_envs
        )

    def find(self, session_id: str) -> Session | None:
        """Return the open session of that id."""
        return self._open.get(session_id)

    async def open(self, make_runner: Callable[[], Runner]) -> Session:
        """Take a slot and build the environment.

        Raises:
            SessionCapacityError: no slot is free.
            EnvironmentFactoryError: the factory raised; the slot is free again.
        """
        await self._wait_for_slot()
        session = Session(make_runner(), self.config.session_timeout)
        self._slots += 1
        self._open[session.id] = session
        try:
            hosted = await session.runner.build()
        except asyncio.CancelledError:
            self.end(session)
            raise
        except Exception:
            await asyncio.wait({self.end(session)})
            raise
        hosted.session_id = session.id
        return session

    def end(self, session: Session) -> asyncio.Task[None]:
        """End a session, once; whatever it still does is cancelled or outwaited.

        Returns:
            A task that ends with ``env.close()`` or after `CLOSE_TIMEOUT_S`.
        """
        session.unwatch()
        del self._open[session.id]
        session.outlived = session.runner.withdraw()
        closed = session.runner.close(spare=self._concurrent)
        self._closing.add(closed)
        if self._concurrent:
            self._slots -= 1
            if session.outlived:
                self._abandon(session)
                _log.info("session %s was abandoned during a request", session.id)
        elif not session.outlived:
            self._freeing.add(closed)
            closed.add_done_callback(self._freeing.discard)
        closed.add_done_callback(lambda closed: self._ended(session, closed))
        task = asyncio.get_running_loop().create_task(self._wait(session, closed))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
        return task

    def forget(self, session: Session) -> None:
        """Free the slot of a session whose loop is closed: it can be ended no more."""
        session.unwatch()
        del self._open[session.id]
        self._slots -= 1
        _log.warning("the event loop of session %s was closed under it", session.id)

    async def drain(self, until_s: float | None = None) -> None:
        """Wait until the environments of all ended sessions are closed.

        Args:
            until_s: when to give up, in `time.monotonic` seconds; by default in
                `STOP_TIMEOUT_S`.
        """
        loop = asyncio.get_running_loop()
        closing = {closed for closed in self._closing if closed.get_loop() is loop}
        if not closing:
            return
        now_s = time.monotonic()
        left_s = STOP_TIMEOUT_S if until_s is None else max(0.0, until_s - now_s)
        with contextlib.suppress(asyncio.CancelledError):  # a forced end
            await asyncio.wait(closing, timeout=left_s)
        hung = sum(not closed.done() for closed in closing)
        if hung:
            _log.warning("%d environments still run and are not closed", hung)

    def _abandon(self, session: Session) -> None:
        self.abandoned += not session.abandoned
        session.abandoned = True

    def _ended(self, session: Session, closed: asyncio.Future[None]) -> None:
        self._closing.discard(closed)
        session.runner.release()
        if not self._concurrent:
            self._slots -= 1
        self.abandoned -= session.abandoned
        if not closed.cancelled() and closed.exception() is not None:
            _log.error(
                "session %s was not closed", session.id, exc_info=closed.exception()
            )

    async def _wait(self, session: Session, closed: asyncio.Future[None]) -> None:
        """Wait for a session's close; one that takes too long abandons it."""
        done, _ = await asyncio.wait({closed}, timeout=CLOSE_TIMEOUT_S)
        if done:
            return
        if self._concurrent:
            self._abandon(session)
        _log.warning(
            "env.close() of session %s has not returned within %g s",
            session.id,
            CLOSE_TIMEOUT_S,
        )

    async def _wait_for_slot(self) -> None:
        """Return when a slot is free; wait only for sessions that are just closing.

        A client that closes and connects again must find its own slot free, though
        its environment is still being closed.

        Raises:
            SessionCapacityError: no slot is or becomes free.
        """
        deadline_s = time.monotonic() + SLOT_GRACE_S
        while True:
            try:
                return self._refuse_when_full()
            except SessionCapacityError:
                left_s = deadline_s - time.monotonic()
                if not self._freeing or left_s <= 0:
                    raise
            await asyncio.wait(
                self._freeing, timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )

    def _refuse_when_full(self) -> None:
        maximum = self.config.max_concurrent_envs
        if self._slots >= maximum:
            raise SessionCapacityError(self._slots, maximum)
        if self.abandoned > self._max_abandoned:
            message = (
                f"Server at capacity: {self._slots}/{maximum} sessions active and "
                f"{self.abandoned} still running that their clients abandoned. "
                "Cannot accept new connections."
            )
            raise SessionCapacityError(self._slots, maximum, message)
