"""The protected members that upstream's subclasses and tests use or replace.

A step is a message out (``_send``) and a message in (``_receive``), as dicts, through
the socket ``_ws``. Where a subclass or an instance has its own ``_send`` or
``_receive``, or a socket was put into ``_ws`` (anything with ``send``, ``recv`` and
``close``, such as a connection of ``websockets``), calls go that slow way, one at a
time. Otherwise these members work on the client's own connection, beside its fast way.
"""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from openenv.core._client.link import Call
from openenv.core._client.settings import checked_seconds
from openenv.core._native import native
from openenv.errors import RequestTimeout, ServerError, server_error

if TYPE_CHECKING:
    from openenv.core._client.home import Home

_ANSWERS: Final = {
    "reset": "observation",
    "step": "observation",
    "state": "state",
    "mcp": "mcp",
}
_GIVEN_UP: Final = "a call on the socket in _ws was given up, and its answer may come"


class RawMessages:
    """Exchange single messages; see the module."""

    _home: Home
    _message_timeout: float | None
    # Of the class, because some tests make clients without __init__.
    _outside_ws: Any | None = None
    _turn: asyncio.Lock | None = None
    _sent: deque[tuple[str, asyncio.Future[Any]]] | None = None

    @property
    def _ws(self) -> Any | None:
        """Return what was put here, else the open connection, else None."""
        if self._outside_ws is not None:
            return self._outside_ws
        home = self.__dict__.get("_home")
        connection = None if home is None else home.link.connection
        return connection if connection is not None and connection.is_open else None

    @_ws.setter
    def _ws(self, socket: Any | None) -> None:
        self._outside_ws = socket
        if "_home" in self.__dict__:
            self._home.abort_soon()

    async def _send(self, message: dict[str, Any]) -> None:
        """Send one message.

        Args:
            message: ``{"type": …, "data": …}``.

        Raises:
            ValueError: The type is none of the protocol's.
            EncodeError: It has no wire form.
            OpenEnvError: There is no connection.
        """
        if self._outside_ws is not None:
            # Encoded here, so that it may hold what other messages may.
            await self._outside_ws.send(native.json_encode(message).decode())
            return
        kind = message.get("type")
        if kind == "close":
            await self._home.run(self._home.link.close)
            return
        if kind not in _ANSWERS:
            msg = f"no message of the type {kind!r}; use {', '.join(_ANSWERS)} or close"
            raise ValueError(msg)
        call = Call(kind, message.get("data"), objects())
        answer = asyncio.ensure_future(self._home.perform(call))
        answer.add_done_callback(_seen)
        if self._sent is None:
            self._sent = deque()
        self._sent.append((kind, answer))

    async def _receive(self) -> dict[str, Any]:
        """Return the next message; an error of the server is a message as well.

        Raises:
            RequestTimeout: None came in ``_message_timeout`` seconds.
            RuntimeError: Nothing was asked.
            OpenEnvError: The connection ended.
        """
        if self._outside_ws is not None:
            return await self._receive_outside(self._outside_ws)
        if not self._sent:
            raise RuntimeError("_receive() without a _send() before it")
        kind, answer = self._sent.popleft()
        try:
            return {"type": _ANSWERS[kind], "data": await answer}
        except ServerError as exc:
            return {"type": "error", "data": exc.data}

    async def _send_and_receive(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send one message and return the answer.

        Raises:
            ServerError: The answer is an error.
            OpenEnvError: As `_send` and `_receive`.
        """
        await self._send(message)
        answer = await self._receive()
        if answer.get("type") == "error":
            raise server_error(answer.get("data") or {})
        return answer

    async def _ask_raw(
        self, op: str, payload: dict[str, Any] | None, timeout_s: float | None = None
    ) -> Any:
        """Make a call by `_send` and `_receive`, and return the answer's ``data``.

        Raises:
            RequestTimeout: It took longer than ``timeout_s`` seconds.
        """
        timeout_s = checked_seconds("timeout_s", timeout_s)
        message = {"type": op} if payload is None else {"type": op, "data": payload}
        if self._turn is None:
            self._turn = asyncio.Lock()
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit, self._turn:
                answer = await self._send_and_receive(message)
        except TimeoutError as exc:
            if limit.expired():
                raise RequestTimeout(op, timeout_s or 0.0) from exc
            raise
        return answer.get("data", {})

    async def _close_outside_ws(self) -> None:
        socket, self._outside_ws = self._outside_ws, None
        self._turn = None  # it belongs to one event loop
        if socket is None:
            return
        with contextlib.suppress(Exception):  # it may be gone already
            await socket.send(json.dumps({"type": "close"}))
        with contextlib.suppress(Exception):
            await socket.close()

    async def _receive_outside(self, socket: Any) -> dict[str, Any]:
        timeout_s = self._message_timeout
        try:
            async with asyncio.timeout(timeout_s):
                text = await socket.recv()
        except BaseException as exc:
            # A late answer would be taken for the next call's.
            self._outside_ws = None
            self._home.link.lose(_GIVEN_UP)
            _close_later(socket)
            if isinstance(exc, TimeoutError):
                raise RequestTimeout("receive", timeout_s or 0.0) from exc
            raise
        message: dict[str, Any] = json.loads(text)
        return message


def _close_later(socket: Any) -> None:
    async def close() -> None:
        with contextlib.suppress(Exception):
            await socket.close()

    task = asyncio.get_running_loop().create_task(close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


def _seen(answer: asyncio.Future[Any]) -> None:
    # Whether anybody receives it is the caller's affair.
    if not answer.cancelled():
        answer.exception()


@functools.cache
def objects() -> native.Decoder:
    """Return the decoder of answers that become plain Python objects."""
    return native.Decoder.data()


_closing: Final[set[asyncio.Task[None]]] = set()
