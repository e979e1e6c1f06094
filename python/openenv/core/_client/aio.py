"""One connection: an `asyncio.Protocol` around the Rust endpoint.

All rules (upgrade, frames, order of answers, deadlines, keepalive, the close
handshake) are the endpoint's. This driver brings it bytes and the time, writes what
it gives back, and turns its state into what `asyncio` knows. Over a transport of Rust's
hub (see ``sockets``) the bytes that come go to the endpoint without this driver::

    dial ──> opening ──(101)──> open ──(close, or the peer's)──> closing ──> lost
               └──────────── any failure, deadline or cancellation ───────────┘

A connection belongs to the loop it was opened on; every method is called there.
"""

# ruff: noqa: ANN401 - answers have the type that the decoder gives them

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final, cast

from typing_extensions import override

from openenv.core._client import dial
from openenv.core._client.timers import timers_of
from openenv.core._native import native
from openenv.errors import ClientError, ConnectFailed, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from openenv.core._client.dial import Address
    from openenv.core._client.settings import Settings

_FEATURES: Final = ("OpenEnv-Features", "nonfinite, ignored, exception")
# A peer that reads is never behind by more than one message, since requests go out
# one at a time. The slack is for pongs; above it the peer only sends and never reads.
_UNREAD_SLACK_BYTES: Final = 1 << 20
_GOING_AWAY: Final = 1001
_PATH_STATUSES: Final = frozenset({403, 404})  # upstream's server answers 403
_PATH_HINT: Final = "; is /ws below the base URL?"
_CLOSE_LIMIT_S: Final = 5.0  # as long as it may take a busy server to say goodbye


async def open_connection(
    address: Address, settings: Settings, deadline: float
) -> Connection:
    """Dial, do the upgrade, and return the open connection.

    Args:
        address: Where to.
        settings: Limits, pings and headers.
        deadline: Loop-clock seconds by which the connection must be open.

    Raises:
        ConnectFailed: DNS, TCP, TLS or the upgrade failed, or the time ran out.
        ServerError: The server took the upgrade and refused the session at once.
    """
    loop = asyncio.get_running_loop()
    connection = Connection(loop, address, settings, deadline)
    try:
        async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
            await dial.open_transport(loop, address, settings, lambda: connection)
            await connection.opened
        connection.arm()  # pings begin
        # A refusal often comes with the 101 or right behind it: one turn, no wait.
        await asyncio.sleep(0)
        connection.raise_refusal()
    except BaseException as exc:
        if connection.was_dropped and exc.__cause__ is None:
            exc.__cause__ = ConnectionResetError("the peer closed without an answer")
        connection.give_up()
        failure = _connect_failure(exc, address)
        if failure is exc:
            raise
        raise failure from exc
    return connection


def _connect_failure(exc: BaseException, address: Address) -> BaseException:
    url = dial.shown_url(address.url)
    if isinstance(exc, ConnectFailed):
        exc.url = exc.url or url
        exc.reason += _PATH_HINT if exc.status in _PATH_STATUSES else ""
        return exc
    if isinstance(exc, TimeoutError) and not exc.args:
        return ConnectFailed("no connection within the connect timeout", url)
    if isinstance(exc, (OSError, ProtocolError, UnicodeError)) or (
        isinstance(exc, ClientError) and isinstance(exc, ConnectionError)
    ):
        return ConnectFailed(str(exc) or type(exc).__name__, url)
    return exc


class Connection(dial.Driver):
    """Drive one endpoint over one transport.

    Args:
        loop: The loop that it belongs to.
        address: Where it goes.
        settings: Limits, pings and headers.
        deadline: Loop-clock seconds by which the upgrade must be answered.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        settings: Settings,
        deadline: float,
    ) -> None:
        self.loop = loop
        self.due = math.inf
        # The short way of `request`, or what says that there is none.
        self.ask: Callable[..., asyncio.Future[Any] | None] = _not_at_once
        self.opened: asyncio.Future[None] = loop.create_future()
        self._deadline = deadline
        self.max_unsent_bytes = settings.max_message_bytes + _UNREAD_SLACK_BYTES
        self.was_dropped = False
        """Whether the peer ended the connection before the upgrade was answered."""
        self._paused = False
        self._cut_off: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | native.Transport | None = None
        self._lost: asyncio.Future[None] = loop.create_future()
        self._timers = timers_of(loop)
        self.endpoint = native.ClientEndpoint(
            address.authority,
            address.target,
            _headers(address, settings),
            max_message_bytes=settings.max_message_bytes,
            ping_interval_s=settings.ping_interval_s,
            ping_timeout_s=settings.ping_timeout_s,
        )

    # --- what the link calls --------------------------------------------------

    async def request(
        self,
        op: str,
        payload: object,
        decoder: native.Decoder,
        deadline: float,
        now: float,
    ) -> Any:
        """Send a request, or queue it behind the others, and await its answer.

        Nothing is awaited before the request has its place in the queue, so calls
        are answered in the order in which they were made.

        Args:
            op: ``reset``, ``step``, ``state`` or ``mcp``.
            payload: What becomes ``data``; None for ``state``.
            decoder: How the answer's ``data`` becomes the result.
            deadline: Loop-clock seconds; infinity for none.
            now: Loop-clock seconds.

        Raises:
            EncodeError: The payload has no wire form; nothing was sent.
            LimitExceeded: It is larger than either side takes; nothing was sent.
            RequestTimeout: No answer in time; a late one is dropped.
            ConnectionClosed: The connection ended first.
            ServerError: The server answered an error.
        """
        future: asyncio.Future[Any] = self.loop.create_future()
        data = self.endpoint.request(op, payload, future, decoder, deadline, now)
        if data is not None:
            self._write(data)
        if deadline < self.due:
            self._timers.arm(self, deadline)
        try:
            return await future
        except asyncio.CancelledError:
            self.endpoint.abandon(future)
            raise

    def start_close(self, code: int = 1000) -> None:
        """Say goodbye; a peer that does not answer is cut off some seconds later."""
        if self._transport is None or self._lost.done():
            return
        if not self.is_open or self._transport.is_closing():
            self.abort()
            return
        self._after(self.endpoint.close(code, self.loop.time()))
        self.arm()
        if self._cut_off is None:
            self._cut_off = self.loop.call_later(_CLOSE_LIMIT_S, self.abort)

    async def close(self, patience_s: float) -> None:
        """Say goodbye and wait until the connection is gone.

        Args:
            patience_s: After so many seconds the connection is cut off; with zero
                nothing is waited for, the goodbye goes on in the background.
        """
        self.start_close()
        if patience_s <= 0 or self._transport is None:
            return
        try:
            await asyncio.wait((self._lost,), timeout=patience_s)
        finally:
            self.abort()

    def abort(self) -> None:
        """Cut the connection off; what is outstanding fails."""
        if self._transport is not None:
            self._transport.abort()
        elif not self.opened.done():
            self.opened.cancel()

    def give_up(self) -> None:
        """Cut off a connection that did not come about, and see to its end.

        A transport whose making is cancelled may never say that it was lost (uvloop's
        does not), or may come only after this.
        """
        self.abort()
        self.connection_lost(None)

    @property
    def is_open(self) -> bool:
        """Tell whether requests can be sent."""
        return self.endpoint.state == "open"

    @property
    def is_lost(self) -> bool:
        """Tell whether the transport is gone."""
        return self._lost.done()

    @property
    def owed(self) -> int:
        """Return how many answers the server still owes to nobody."""
        return self.endpoint.owed

    @property
    def refusal(self) -> BaseException | None:
        """Return the error that the server, or the transport, ended it with."""
        return self.endpoint.closed_error

    def arm(self) -> None:
        """See to it that `tick` is called when the endpoint wants it."""
        when = self.endpoint.next_timeout()
        if when is not None:
            self._timers.arm(self, when)

    def raise_refusal(self) -> None:
        """Raise the refusal, if there is one."""
        if self.refusal is not None:
            raise self.refusal

    def take_ignored(self) -> list[str]:
        """Return the reset keys that the server named as ignored, and forget them."""
        return self.endpoint.take_ignored()

    # --- what the loop calls --------------------------------------------------

    @override
    def connection_made(
        self, transport: asyncio.BaseTransport | native.Transport
    ) -> None:
        self._transport = cast("asyncio.Transport | native.Transport", transport)
        self.ask = getattr(transport, "request", _not_at_once)  # a hub's has one
        if self._lost.done():  # given up before it was made
            self._transport.abort()
            return
        self._timers.add(self)
        now = self.loop.time()
        self._write(self.endpoint.connect(self.opened, self._deadline, now))
        self.arm()

    @override
    def data_received(self, data: bytes) -> None:
        self._after(self.endpoint.receive(data, self.loop.time()))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.was_dropped = not self.opened.done()
        self.endpoint.lost(exc)
        if self._cut_off is not None:
            self._cut_off.cancel()
        if self.opened.done() and not self.opened.cancelled():
            self.opened.exception()  # seen: nobody awaits an opening that was given up
        if not self._lost.done():
            self._lost.set_result(None)

    @override
    def pause_writing(self) -> None:
        self._paused = True

    @override
    def resume_writing(self) -> None:
        self._paused = False

    def tick(self, now: float) -> float:
        """Run the endpoint's timers; return when to come again."""
        if self._lost.done():
            return math.inf
        self._after(self.endpoint.tick(now))
        when = self.endpoint.next_timeout()
        return math.inf if when is None else when

    def leave(self) -> asyncio.Future[None]:
        """Say goodbye because the loop is about to end; done when it is gone."""
        self.start_close(_GOING_AWAY)
        return self._lost

    def _after(self, data: bytes | None) -> None:
        if data is not None:
            self._write(data)
        if self.endpoint.should_disconnect and self._transport is not None:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None  # the endpoint says nothing before it is made
        transport.write(data)
        if self._paused and (transport.get_write_buffer_size() > self.max_unsent_bytes):
            transport.abort()


def _not_at_once(*_: object) -> None:
    return None


def _headers(address: Address, settings: Settings) -> list[tuple[str, str]]:
    headers = list(settings.headers)
    names = {name.lower() for name, _ in headers}
    if address.authorization is not None and "authorization" not in names:
        headers.append(("Authorization", address.authorization))
    headers.append(_FEATURES)
    return headers
