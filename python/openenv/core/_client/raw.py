"""The protected members that upstream's subclasses and tests use or replace.

A step is a message out (``_send``) and a message in (``_receive``), as dicts, through
the socket ``_ws``. Where a subclass or an instance has its own ``_send``, ``_receive``
or ``_send_and_receive``, or a socket was put into ``_ws`` (see ``outside``), calls go
that slow way. Otherwise these members work on the client's own connection, beside its
fast way. The rules of the slow way:

* Calls are made where their carrier lives, one at a time: on the loop of the socket
  in ``_ws``, else on the link's (see ``home``).
* Answers are told apart by their order alone, so a call that ends between its message
  out and its message in takes care of the answer: on the own connection nobody waits
  for it any more; a socket in ``_ws`` is dropped, and the session lost.
* A socket in ``_ws`` that fails, or is taken away after use, has lost the session, too.
"""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import asyncio
import contextlib
import functools
import weakref
from typing import TYPE_CHECKING, Any, Final, TypeVar

from openenv.core._client.exchanges import Exchange, Exchanges, current_exchange
from openenv.core._client.link import SERVER_WENT, Call
from openenv.core._client.outside import Outside
from openenv.core._client.own_socket import OwnSocket
from openenv.core._client.settings import checked_seconds
from openenv.core._native import native
from openenv.errors import (
    ConnectionClosed,
    OpenEnvError,
    RequestTimeout,
    ServerError,
    server_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from openenv.core._client.home import Home

_ANSWERS: Final = {
    "reset": "observation",
    "step": "observation",
    "state": "state",
    "mcp": "mcp",
}
_GIVEN_UP: Final = "a call on the socket in _ws was given up, and its answer may come"
_TAKEN_AWAY: Final = "the socket in _ws was taken away"
_CLOSED_MEANWHILE: Final = "its session ended before the call was made or answered"

EXCHANGES: Final = ("_send", "_receive", "_send_and_receive")
"""The members whose overrides carry calls."""

_ResultT = TypeVar("_ResultT")


class RawMessages:
    """Exchange single messages; see the module."""

    _home: Home
    _message_timeout: float | None
    _call_own: Callable[[str], Coroutine[Any, Any, Any]]
    # Of the class, because some tests make clients without __init__.
    _outside: Outside | None = None
    _own_socket: weakref.ref[OwnSocket] | None = None

    @property
    def _ws(self) -> Any | None:
        """Return what was put here, else the open connection, else None."""
        if self._outside is not None:
            return self._outside.socket
        home = self.__dict__.get("_home")
        connection = None if home is None else home.link.connection
        if connection is None or not connection.is_open:
            return None
        known = self._own_socket() if self._own_socket is not None else None
        if known is None or known.connection is not connection:
            known = OwnSocket(self, connection)
            # Weak: it holds the client, and a cycle would delay both's end.
            self._own_socket = weakref.ref(known)
        return known

    @_ws.setter
    def _ws(self, socket: Any | None) -> None:
        if socket is self._ws:
            return
        before, self._outside = self._outside, None
        if socket is not None and not isinstance(socket, OwnSocket):
            self._outside = Outside(socket)
        if before is not None:
            before.ended = True
        if "_home" in self.__dict__ and self._home.abort_soon():
            self._home.link.end_exchanges()
        if self._outside is None and before is not None and before.was_used:
            self._lose(_TAKEN_AWAY)

    async def _ensure_connected(self) -> None:
        """Connect, in the subclass's way if it has one, unless connected.

        Raises:
            OpenEnvError: As ``connect``.
        """
        if self._ws is None:
            await self._call_own("connect")

    async def _send(self, message: dict[str, Any]) -> None:
        """Send one message.

        Args:
            message: ``{"type": …, "data": …}``.

        Raises:
            ValueError: The type is none of the protocol's.
            EncodeError: It has no wire form.
            OpenEnvError: There is no connection.
        """
        outside = self._outside
        if outside is None:
            await self._send_own(message)
            return
        await self._settle_on_carrier()
        # Encoded here, so that it may hold what other messages may.
        text = native.json_encode(message).decode()
        with self._dropped_on_error(outside):
            await outside.send(text, self._message_timeout)

    async def _receive(self) -> dict[str, Any]:
        """Return the next message; an error of the server is a message as well.

        Raises:
            RequestTimeout: None came in ``_message_timeout`` seconds.
            RuntimeError: Nothing was asked.
            OpenEnvError: The connection ended.
        """
        outside = self._outside
        if outside is None:
            return await self._receive_own()
        self._refuse_other_carrier()
        with self._dropped_on_error(outside):
            return await outside.recv(self._message_timeout)

    async def _send_and_receive(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send one message and return the answer.

        Raises:
            ServerError: The answer is an error.
            OpenEnvError: As `_send` and `_receive`.
        """
        with self._exchange(self._carrier()):
            await self._send(message)
            answer = await self._receive()
        if answer.get("type") == "error":
            raise server_error(answer.get("data") or {})
        return answer

    # --- the client's own connection --------------------------------------------

    async def _send_own(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "close":
            await self._home.run(self._home.link.close)
            return
        if kind not in _ANSWERS:
            msg = f"no message of the type {kind!r}; use {', '.join(_ANSWERS)} or close"
            raise ValueError(msg)
        await self._settle_on_carrier()
        call = Call(kind, message.get("data"), objects())
        answer = asyncio.ensure_future(self._home.perform(call))
        answer.add_done_callback(_seen)
        self._home.link.exchanges.sent.append((kind, answer))

    async def _receive_own(self) -> dict[str, Any]:
        self._refuse_other_carrier()
        sent = self._home.link.exchanges.sent
        if not sent:
            raise RuntimeError("_receive() without a _send() before it")
        kind, answer = sent.popleft()
        try:
            return {"type": _ANSWERS[kind], "data": await answer}
        except ServerError as exc:
            return {"type": "error", "data": exc.data}

    # --- calls --------------------------------------------------------------------

    async def _reset_raw(self, kwargs: dict[str, Any]) -> Any:
        before = self._outside
        had_session = before is not None and before.was_used
        try:
            return await self._ask_raw("reset", kwargs)
        except ConnectionClosed as exc:
            # As a link does: a session that is gone is replaced.
            gone = before is not None and before.was_dropped and had_session
            if not gone or exc.code not in SERVER_WENT:
                raise
        await self._ensure_connected()
        return await self._ask_raw("reset", kwargs)

    async def _ask_raw(
        self, op: str, payload: dict[str, Any] | None, timeout_s: float | None = None
    ) -> Any:
        """Make a call by `_send_and_receive`, and return the answer's ``data``.

        Raises:
            RequestTimeout: It took longer than ``timeout_s`` seconds.
            ConnectionClosed: The session ended while the call waited for its turn.
        """
        timeout_s = checked_seconds("timeout_s", timeout_s)
        message = {"type": op} if payload is None else {"type": op, "data": payload}
        limit = asyncio.timeout(timeout_s)

        async def ask() -> dict[str, Any]:
            try:
                async with limit:
                    return await self._ask_in_turn(message)
            except TimeoutError as exc:
                if limit.expired():
                    raise RequestTimeout(op, timeout_s or 0.0) from exc
                raise

        answer = await self._where_it_lives(ask)
        return answer.get("data", {})

    async def _where_it_lives(
        self, method: Callable[[], Coroutine[Any, Any, _ResultT]]
    ) -> _ResultT:
        outside, home = self._outside, self.__dict__.get("_home")
        if outside is not None:
            if outside.is_stranded:
                with self._dropped_on_error(outside):
                    return await outside.run(method)
            return await outside.run(method)
        if home is not None:
            result: _ResultT = await home.run(method)
            return result
        return await method()

    async def _ask_in_turn(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._own_exchange() is not None:  # an override makes a call: its turn it is
            return await self._send_and_receive(message)
        carrier = self._carrier()
        async with contextlib.AsyncExitStack() as turns:
            if carrier is not None:
                await turns.enter_async_context(carrier.turn)
            if carrier is self._carrier():
                if isinstance(carrier, Exchanges) and self._home.link.is_lost:
                    await self._begin_anew(message)
                with self._exchange(carrier, turns):
                    return await self._send_and_receive(message)
        if carrier is None or carrier.ended:
            raise ConnectionClosed(reason=_CLOSED_MEANWHILE)
        return await self._ask_in_turn(message)  # the call before connected

    async def _begin_anew(self, message: dict[str, Any]) -> None:
        if message["type"] != "reset":
            self._home.link.raise_lost()
        await self._ensure_connected()  # an override may need what is in _ws

    def _carrier(self) -> Outside | Exchanges | None:
        if self._outside is not None:
            return self._outside
        home = self.__dict__.get("_home")
        exchanges: Exchanges | None = None if home is None else home.link.exchanges
        return exchanges

    # --- ends ---------------------------------------------------------------------

    @contextlib.contextmanager
    def _exchange(
        self,
        carrier: Outside | Exchanges | None,
        turns: contextlib.AsyncExitStack | None = None,
    ) -> Iterator[None]:
        """Have what the block sends and, failing, does not receive reach nobody."""
        around = self._own_exchange()
        exchange = around or Exchange(self, carrier, turns)
        token = current_exchange.set(exchange)
        try:
            yield
        except ServerError:
            raise  # that is an answer
        except BaseException as exc:
            carrier = exchange.carrier if exchange.has_sent else self._carrier()
            if not isinstance(carrier, Outside):
                if carrier is not None and exchange.has_sent:
                    carrier.give_up()
            elif carrier.owed or self._may_owe(exc):
                self._drop(carrier, exc)
            raise
        finally:
            exchange.is_over = around is None
            current_exchange.reset(token)

    def _own_exchange(self) -> Exchange | None:
        exchange = current_exchange.get()
        if exchange is None or exchange.client is not self or exchange.is_over:
            return None
        return exchange

    def _may_owe(self, exc: BaseException) -> bool:
        # An override may speak to the socket itself, which nobody counts.
        client: Any = self
        return not isinstance(exc, OpenEnvError) and any(
            client._has_own(name)  # noqa: SLF001 - a mixin's own class
            for name in EXCHANGES
        )

    async def _settle_on_carrier(self) -> None:
        """Take note of what the call is sent to, which its override may just have put.

        Raises:
            ConnectionClosed: Its session ended before it was sent.
        """
        exchange, carrier = self._own_exchange(), self._carrier()
        if exchange is None:
            return
        before = exchange.carrier
        if before is not carrier:
            if before is None or carrier is None or before.ended:
                raise ConnectionClosed(reason=_CLOSED_MEANWHILE)
            if exchange.turns is not None:
                await exchange.turns.enter_async_context(carrier.turn)
        exchange.carrier, exchange.has_sent = carrier, True

    def _refuse_other_carrier(self) -> None:
        """Refuse to take for a call what another session answers.

        Raises:
            ConnectionClosed: The session that the call was sent in has ended.
        """
        exchange = self._own_exchange()
        if (
            exchange is not None
            and exchange.has_sent
            and exchange.carrier is not self._carrier()
        ):
            raise ConnectionClosed(reason=_CLOSED_MEANWHILE)

    @contextlib.contextmanager
    def _dropped_on_error(self, outside: Outside) -> Iterator[None]:
        try:
            yield
        except BaseException as exc:
            self._drop(outside, exc)
            raise

    def _drop(self, outside: Outside, exc: BaseException) -> None:
        if self._outside is outside:
            self._outside, outside.was_dropped = None, True
            outside.ended = True
            known = isinstance(exc, OpenEnvError) and not isinstance(exc, TimeoutError)
            self._lose(str(exc) if known else _GIVEN_UP)
        outside.close_soon()

    def _lose(self, why: str) -> None:
        if "_home" in self.__dict__:
            self._home.link.lose(why)

    async def _close_outside_ws(self) -> None:
        outside, self._outside = self._outside, None
        if outside is None:
            return
        outside.ended = True
        try:
            await outside.run(outside.close)
        except ConnectionClosed:  # its loop ended
            outside.close_soon()

    def _refuse_own_loop(self) -> None:
        """Refuse to block the very loop that has to serve the call.

        Raises:
            RuntimeError: As `Home.refuse_own_loop`.
        """
        blocked = None if self._outside is None else self._outside.blocked_loop
        if blocked is not None:
            raise RuntimeError(
                "the socket in _ws belongs to the event loop that runs in this thread, "
                "so a blocking call would never end; await the client's method instead"
            )
        self._home.refuse_own_loop()


def _seen(answer: asyncio.Future[Any]) -> None:
    # Whether anybody receives it is the caller's affair.
    if not answer.cancelled():
        answer.exception()


@functools.cache
def objects() -> native.Decoder:
    """Return the decoder of answers that become plain Python objects."""
    return native.Decoder.data()
