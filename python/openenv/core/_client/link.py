"""One client's session, and which connection carries it.

In the classic protocol a connection is a session: when it goes, so does the
environment behind it. The rules (``DEVIATIONS.md`` 7, 8, 9, 14):

* Calls are served in the order in which they were made, one at a time.
* The first call opens the connection.
* A *begun* session (a reset was tried, or a call was sent) whose connection ends
  is *lost*: ``step`` and ``state`` raise `SessionLost`, ``reset`` opens a new one.
* A session that had not begun lost nothing: the next call opens a new connection.
* ``reset`` does not wait behind a request that nobody waits for any more: it opens a
  new connection, and the old one says goodbye in the background. A server with few
  sessions may need a moment to notice, so a refusal is tried again until the deadline.
* ``close`` ends what still connects or waits for it (see ``turns``); a call that was
  sent fails with its connection. After it the link is as new.

::

    new ──connect──> open ──a call──> begun ──connection ends──> lost
     ^                 └─connection ends─┐ │                       │
     └─────────────── close ─────────────┴─┘ <────── reset ────────┘

A link lives on one event loop at a time (see ``home``); all methods run there.
"""

# ruff: noqa: ANN401 - answers have the type that the decoder gives them

from __future__ import annotations

import asyncio
import math
import random
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from openenv.core._client.aio import open_connection
from openenv.core._client.dial import parse_address
from openenv.core._client.exchanges import Exchanges
from openenv.core._client.to_the_end import to_the_end
from openenv.core._client.turns import Turns
from openenv.errors import (
    CapacityReached,
    ConnectFailed,
    ConnectionClosed,
    EncodeError,
    FactoryFailed,
    OpenEnvError,
    RemoteProtocolError,
    RequestTimeout,
    SessionExpired,
    SessionFailed,
    SessionLost,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from openenv.core._client.aio import Connection
    from openenv.core._client.provider import ClientProvider
    from openenv.core._client.settings import Settings
    from openenv.core._client.turns import Place
    from openenv.core._native import native

# Close codes of a server that went, whatever it was asked.
SERVER_WENT: Final = frozenset({1000, 1001, 1005, 1006, 1012})
# A good server answers the goodbye in one round trip.
_CLOSE_PATIENCE_S: Final = 1.0
# How long a session that this client gave back may still count at the server.
_GIVEN_BACK_S: Final = 1.0
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0
_LONGEST_LIMIT_S: Final = 1e8  # years; clocks of threads and loops end not far above
_SESSION_ENDS: Final = (
    CapacityReached,
    FactoryFailed,
    RemoteProtocolError,  # whose answer comes next could not be told
    SessionExpired,
    SessionFailed,
)
_PASSING_STATUSES: Final = frozenset({429, 502, 503})
_PASSING_CAUSES: Final = (
    ConnectionRefusedError,
    ConnectionResetError,
    ConnectionClosed,
)

_ResultT = TypeVar("_ResultT")


@dataclass(slots=True)  # not frozen: that costs half a microsecond a call
class Call:
    """Be one request to make; nobody changes it.

    ``timeout_s`` bounds the whole call, connecting included; with None the answer
    alone is bounded, by the settings' ``message_timeout_s``. ``finish`` makes the
    result of the decoded answer, in the caller's thread.
    """

    op: str
    payload: object
    decoder: native.Decoder
    timeout_s: float | None = None
    finish: Callable[[Any], Any] | None = None

    def finished(self, answer: Any) -> Any:
        """Return the caller's result for the decoded answer."""
        return answer if self.finish is None else self.finish(answer)


class Link:
    """Carry one client's calls over whichever connection is right.

    Args:
        settings: The client's settings, which may change between calls.
        provider: Started before a connection is opened, if it has to be.
    """

    def __init__(self, settings: Settings, provider: ClientProvider | None) -> None:
        self.ready: Connection | None = None
        """The connection of a begun session with nothing in a step's way: it may be
        asked past this link, by `Connection.ask` and, if that fails, `fail`."""
        self.exchanges = Exchanges()
        self._settings = settings
        self._provider = provider
        self._connection: Connection | None = None
        self._begun = False
        self._lost: BaseException | str | None = None
        self._turns = Turns()
        self._given_back_until = -math.inf
        self._told_ignored: set[str] = set()

    @property
    def connection(self) -> Connection | None:
        """Return the connection, open or not, that carries the session."""
        return self._connection

    @property
    def is_in_use(self) -> bool:
        """Tell whether there is a connection, or a call under way that may need one."""
        return (
            self._connection is not None
            or bool(self._turns)
            or self.exchanges.turn.locked()
        )

    def forget(self) -> None:
        """Be as new; for a link without a connection."""
        self.ready = None
        self._begun, self._lost = False, None

    def leave_loop(self, why: str) -> None:
        """Forget the connection because its event loop serves no calls any more."""
        if self._connection is not None and self._begun:
            self._lost = why
        self.ready = self._connection = None
        self.end_exchanges()
        self._turns = Turns()
        self._given_back_until = -math.inf

    def lose(self, why: str) -> None:
        """Have the session be lost that a caller spoke to past this link."""
        self.ready = None
        self._begun, self._lost = True, why

    def limit_s(self, call: Call) -> float | None:
        """Return in how many seconds a call ends; None if it has first to connect."""
        if call.timeout_s is not None:
            limit_s: float | None = call.timeout_s
        else:
            connection = self._connection
            if (
                connection is None
                or self._turns
                or not connection.is_open
                or (call.op == "reset" and connection.owed)
            ):
                return None
            limit_s = self._settings.message_timeout_s
        return None if limit_s is None or limit_s > _LONGEST_LIMIT_S else limit_s

    @property
    def is_lost(self) -> bool:
        """Tell whether the session is; takes note of a connection that has ended."""
        connection = self._connection
        if connection is not None and not connection.is_open:
            self._end(connection, connection.refusal)
        return self._lost is not None

    def raise_lost(self) -> NoReturn:
        """Raise the `SessionLost` of the session that is."""
        cause = self._lost if isinstance(self._lost, BaseException) else None
        raise SessionLost(str(self._lost)) from cause

    def end_exchanges(self) -> None:
        """Have the single messages under way be another session's."""
        self.exchanges.ended = True
        self.exchanges = Exchanges()

    # --- calls ----------------------------------------------------------------

    async def connect(self, retry_s: float = 0.0) -> None:
        """Open a connection unless one is open; a lost session stays lost.

        Args:
            retry_s: For so many seconds it is tried again while the server is not up
                yet (see `may_pass`); each attempt has the settings' connect timeout.

        Raises:
            ConnectFailed: No connection came about.
            CapacityReached: The server refused the session at once.
        """
        give_up = _now() + retry_s

        def attempt() -> Coroutine[Any, Any, Connection]:
            deadline = _now() + self._settings.connect_timeout_s
            return self._in_turn(deadline, takes_lost=True, give_up=give_up)

        await self._patiently(attempt)

    async def start_provider(self) -> None:
        """Start the provider, where that is this client's job and not done yet.

        Raises:
            ProviderError: See the provider.
        """
        if self._provider is not None:
            self.ready = None
            with self._turns.turn():
                async with self._turns.place():
                    await self._provider.start()

    def perform(self, call: Call) -> Coroutine[Any, Any, Any]:
        """Return the coroutine that makes a call; to be awaited at once.

        (A plain function, so that the usual step is two coroutines deep and not four.)

        Raises:
            SessionLost: The session is gone and this is not a reset.
            ConnectFailed: No connection came about.
            OpenEnvError: As `Connection.request`.
        """
        if call.op == "reset":
            return self._reset(call)
        connection = self._connection
        if (
            connection is None
            or self._turns
            or self._lost is not None
            or not connection.is_open
        ):
            return self._connect_and_ask(call)
        return self._ask(connection, call, connection.loop.time())

    def fail(
        self, connection: Connection, future: asyncio.Future[Any], exc: BaseException
    ) -> None:
        """Take note that a request made on `ready` failed, or that its caller left.

        Args:
            connection: The connection that was asked.
            future: What it gave.
            exc: What waiting for it raised.
        """
        if isinstance(exc, asyncio.CancelledError):
            connection.endpoint.abandon(future)
        elif isinstance(exc, _SESSION_ENDS):
            self._end(connection, exc)

    def perform_later(
        self, call: Call, limit_s: float | None
    ) -> Coroutine[Any, Any, Any]:
        """Return the coroutine that makes a call whenever it is run, on any thread.

        Args:
            call: The call.
            limit_s: In how many seconds from now it is not made any more; None for no
                limit.
        """
        due = math.inf if limit_s is None else time.monotonic() + limit_s
        return self._perform_until(due, call, limit_s)

    async def _perform_until(
        self, due: float, call: Call, limit_s: float | None
    ) -> Any:
        if limit_s is not None and time.monotonic() > due:
            raise RequestTimeout(call.op, limit_s)
        return await self.perform(call)

    async def _connect_and_ask(self, call: Call) -> Any:
        started = _now()
        deadline = self._connect_deadline(call, started)
        connection = await self._in_turn(deadline, takes_lost=False)
        return await self._ask(connection, call, started)

    async def close(self) -> None:
        """Give the session back; never waits for an answer that is owed.

        Calls that connect or wait for their turn raise `ConnectionClosed`; what is
        called from now on begins anew.
        """
        connection, self._connection = self._connection, None
        self.exchanges.give_up()
        self.end_exchanges()
        self.forget()
        self._turns.end_all()
        await to_the_end(self._close_in(self._turns.place(), connection))

    async def _close_in(self, place: Place, connection: Connection | None) -> None:
        async with place:
            self.forget()  # a reset that was ended is nobody's loss
            if connection is not None:
                self._given_back_until = _now() + _GIVEN_BACK_S
                await connection.close(0.0 if connection.owed else _CLOSE_PATIENCE_S)

    # --- reset ----------------------------------------------------------------

    async def _reset(self, call: Call) -> Any:
        started = _now()
        stale = self._connection
        try:
            return await self._patiently(lambda: self._reset_once(call, started))
        except ConnectionClosed as exc:
            # The server went before this loop could notice, and its session with
            # it: nothing is done twice when a session that is gone is replaced.
            fresh = self._connection is not stale or stale is None
            if fresh or exc.code not in SERVER_WENT:
                raise
        return await self._patiently(lambda: self._reset_once(call, started))

    async def _reset_once(self, call: Call, started: float) -> Any:
        self._drop_held_up(call, started)
        connection = await self._for_reset(call, started)
        was_lost, self._lost = self._lost, None
        try:
            answer = await self._ask(connection, call, started)
        except BaseException:
            if self._lost is None:
                self._lost = was_lost
            raise
        self._tell_ignored(connection)
        return answer

    async def _for_reset(self, call: Call, started: float) -> Connection:
        connection = self._connection
        if connection is not None and not self._turns and connection.is_open:
            return connection
        deadline = self._connect_deadline(call, started)
        try:
            return await self._in_turn(deadline, takes_lost=True)
        except OpenEnvError as exc:
            # The caller relies on a reset that never was.
            if self._connection is None and self._lost is None:
                self._begun, self._lost = True, exc
            raise

    def _drop_held_up(self, call: Call, started: float) -> None:
        connection = self._connection
        if connection is None or not connection.owed:
            return
        # The session's slot may stay taken until the held-up request is done.
        held = self._answer_deadline(call, started, started)
        self._given_back_until = max(self._given_back_until, held)
        self.ready = self._connection = None
        connection.start_close()

    def _tell_ignored(self, connection: Connection) -> None:
        names = set(connection.take_ignored()) - self._told_ignored
        if names:
            self._told_ignored |= names
            warnings.warn(
                f"the environment's reset() takes no {', '.join(sorted(names))}; "
                "the server ignored what was given",
                stacklevel=2,
            )

    # --- connections ----------------------------------------------------------

    async def _ask(self, connection: Connection, call: Call, started: float) -> Any:
        had_begun, self._begun = self._begun, True
        now = connection.loop.time()
        deadline = self._answer_deadline(call, started, now)
        try:
            answer = await connection.request(
                call.op, call.payload, call.decoder, deadline, now
            )
        except EncodeError:  # nothing was sent
            self._begun = had_begun
            raise
        except _SESSION_ENDS as exc:
            self._begun = had_begun or call.op == "reset"
            self._end(connection, exc)
            raise
        if connection is self._connection and not self._turns and self._lost is None:
            self.ready = connection
        return answer

    async def _in_turn(
        self, deadline: float, *, takes_lost: bool, give_up: float = -math.inf
    ) -> Connection:
        self.ready = None
        with self._turns.turn():
            async with self._turns.place():
                return await self._usable(deadline, give_up, takes_lost=takes_lost)

    async def _usable(
        self, deadline: float, give_up: float, *, takes_lost: bool
    ) -> Connection:
        if self.is_lost and not takes_lost:
            self.raise_lost()
        if self._connection is None:
            self._connection = await self._open(deadline, give_up)
        return self._connection

    async def _open(self, deadline: float, give_up: float) -> Connection:
        provider, started = self._provider, _now()
        if provider is not None:
            await provider.start()
        # What the provider took for its start is not the connection's.
        waited_s = _now() - started
        try:
            return await self._dial(deadline + waited_s, give_up + waited_s)
        except BaseException:
            if provider is not None:
                await provider.stop_if_owned()
            raise

    async def _dial(self, deadline: float, give_up: float) -> Connection:
        settings = self._settings
        address = parse_address(settings.ws_url or "")
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await open_connection(address, settings, deadline)
            except ConnectFailed as exc:
                if not may_pass(exc) or _now() + pause_s > give_up:
                    raise
            # Half of it by chance: thousands of clients wait for the same server.
            await asyncio.sleep(random.uniform(0.5, 1.0) * pause_s)  # noqa: S311
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            deadline = _now() + settings.connect_timeout_s

    def _end(self, connection: Connection, cause: BaseException | None) -> None:
        if self._connection is connection:
            self.ready = self._connection = None
            if self._begun and self._lost is None:
                self._lost = cause or "the connection ended"
        connection.start_close()

    async def _patiently(self, attempt: Callable[[], Awaitable[_ResultT]]) -> _ResultT:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await attempt()
            except CapacityReached:
                # Only a slot of our own is waited for, never another client's.
                if _now() + pause_s > self._given_back_until:
                    raise
            self.ready = None
            with self._turns.turn():
                await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _connect_deadline(self, call: Call, started: float) -> float:
        deadline = started + self._settings.connect_timeout_s
        if call.timeout_s is None:
            return deadline
        return min(deadline, started + call.timeout_s)

    def _answer_deadline(self, call: Call, started: float, now: float) -> float:
        if call.timeout_s is not None:
            return started + call.timeout_s
        timeout_s = self._settings.message_timeout_s
        return math.inf if timeout_s is None else now + timeout_s


def may_pass(failure: ConnectFailed) -> bool:
    """Tell whether a server that starts, or has too much to do, fails in this way.

    So do a refused connection, one that a forwarder takes and then drops, and the HTTP
    statuses 429, 502 and 503.
    """
    if failure.status is not None:
        return failure.status in _PASSING_STATUSES
    return isinstance(failure.__cause__, _PASSING_CAUSES)


def _now() -> float:
    return asyncio.get_running_loop().time()
