"""``/ws``: one connection is one session is one environment.

Portable ASGI.  Two tasks a connection: the *reader* (the ASGI call itself) keeps
receiving while a step runs, so that a client that vanishes is noticed at once; the
*worker* serves the messages one at a time, in order::

    receive --> Inbox (bounded) --> worker --> session.run --> send
       |                              |
       +-- disconnect: cancel ------->+--> session ends, close frame

The reader never pauses: a transport that is not read from does not tell that the
client is gone.  So a client with more requests waiting than the inbox holds is sent
off with an error instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from openenv.core._native import native
from openenv.core.env_server._dispatch import Answer, Features
from openenv.core.env_server._wire_errors import (
    CLOSE_NORMAL,
    Flood,
    SessionIdle,
    close_code,
    error_data,
)
from openenv.errors import (
    EnvironmentFactoryError,
    SessionCapacityError,
    SessionNotFoundError,
)

if TYPE_CHECKING:
    from openenv.core.env_server._hosted import Hosted
    from openenv.core.env_server._mcp_sessions import HeldSession
    from openenv.core.env_server._sessions import Session
    from openenv.core.env_server.http_server import HTTPEnvServer

# What may wait of one client; those of upstream and ours send one request at a time.
# In bytes it is the longest message and these besides, so that a message that is
# taken at all is taken behind others, too.
INBOX_MESSAGES: Final = 1024
INBOX_SPARE_BYTES: Final = 1024 * 1024
DEFAULT_MESSAGE_BYTES: Final = 100 * 1024 * 1024  # where the runner's is not known
FAREWELL_S: Final = 1.0  # for a client that reads nothing to take the last error

# What sending raises when the client is gone; RuntimeError: the ASGI server knew first.
_GONE: Final = (WebSocketDisconnect, RuntimeError, OSError)

_log = logging.getLogger(__name__)


async def serve_websocket(server: HTTPEnvServer, websocket: WebSocket) -> None:
    """Serve one connection from accept to close."""
    await Connection(server, websocket).serve()


class _Inbox:
    """Messages between reader and worker; None tells that the session was idle.

    Args:
        max_bytes: most that may wait; of text the characters are counted, which
            are never more than its bytes on the wire.
    """

    def __init__(self, max_bytes: int) -> None:
        self._messages: deque[str | bytes | None] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self._max_bytes = max_bytes
        self._bytes = 0

    def post(self, message: str | bytes | None) -> None:
        """Add a message.

        Raises:
            Flood: now more wait than may.
        """
        self._messages.append(message)
        self._bytes += len(message or "")
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
        if len(self._messages) > INBOX_MESSAGES or self._bytes > self._max_bytes:
            msg = (
                f"more than {INBOX_MESSAGES} requests or {self._max_bytes} bytes of "
                "them wait: send a request when the ones before it are answered"
            )
            raise Flood(msg)

    async def take(self) -> str | bytes | None:
        """Wait for the next message."""
        while not self._messages:
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        message = self._messages.popleft()
        self._bytes -= len(message or "")
        return message


class Connection:
    """One WebSocket connection."""

    def __init__(self, server: HTTPEnvServer, websocket: WebSocket) -> None:
        self._server = server
        self._websocket = websocket
        limit = server.max_message_bytes
        self._inbox = _Inbox((limit or DEFAULT_MESSAGE_BYTES) + INBOX_SPARE_BYTES)
        self._offer = websocket.headers.get("openenv-features")
        self._features = Features.parse(self._offer or "", limit)

    async def serve(self) -> None:
        """Accept, then read until the client is gone."""
        try:
            await self._websocket.accept(headers=self._answer_headers())
        except _GONE:
            return
        worker = asyncio.create_task(self._work())
        try:
            await self._read()
        except Flood as error:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._refuse(error), FAREWELL_S)
        finally:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker

    def _answer_headers(self) -> list[tuple[bytes, bytes]]:
        """Tell peers of ours the longest message that is taken; others nothing."""
        limit = self._server.max_message_bytes
        if self._offer is None or limit is None:
            return []
        return [(b"openenv-max-message-bytes", str(limit).encode())]

    async def _read(self) -> None:
        """Put messages into the inbox until the connection ends.

        Raises:
            Flood: more wait than may.
        """
        while True:
            event = await self._websocket.receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            self._inbox.post(event["bytes"] if text is None else text)

    # -- the worker --------------------------------------------------------------

    async def _work(self) -> None:
        """Hold a session and serve its messages; log what is our own fault."""
        try:
            await self._hold_session()
        except (
            SessionCapacityError,
            SessionNotFoundError,
            EnvironmentFactoryError,
            SessionIdle,
        ) as error:
            if error.__cause__ is not None:
                _log.warning("%s", error, exc_info=error.__cause__)
            await self._refuse(error)
        except Exception as error:  # noqa: BLE001 - a fault of ours, to tell the peer
            _log.exception("a session failed by a fault of the server")
            await self._refuse(error)

    async def _hold_session(self) -> None:
        server = self._server
        session_id = self._websocket.query_params.get("session_id")
        if session_id:
            await self._join(session_id)
            return
        session = await server.open_session()
        try:
            session.watch(partial(self._inbox.post, None))
            await self._serve_messages(session)
        finally:
            ending = server.end_session(session)
            if not session.outlived:
                await asyncio.wait({ending})
        await self._close(CLOSE_NORMAL)

    async def _join(self, session_id: str) -> None:
        """Serve the messages of a session that HTTP requests hold by its id."""
        held_sessions = self._server.held_sessions
        held = held_sessions.attach(session_id)
        try:
            await self._serve_messages(held)
        finally:
            held_sessions.detach(held)
        await self._close(CLOSE_NORMAL)

    async def _serve_messages(self, session: Session | HeldSession) -> None:
        """Answer until the client says close.

        Raises:
            SessionIdle: the session expired.
        """
        while True:
            message = await self._inbox.take()
            if message is None:
                self._expire(session)
                continue
            answer = await self._answer(session, message)
            if answer.data is None or not await self._send(answer.data):
                return

    async def _answer(
        self, session: Session | HeldSession, message: str | bytes
    ) -> Answer:
        dispatcher, features = self._server.dispatcher, self._features

        def answer(hosted: Hosted) -> Answer:
            return dispatcher.answer(hosted, message, features)

        async def answer_async(hosted: Hosted) -> Answer:
            return await dispatcher.answer_async(hosted, message, features)

        result: Answer = await session.run(answer, answer_async)
        session.step_count += result.op == "step"
        return result

    def _expire(self, session: Session | HeldSession) -> None:
        """Raise unless a request came between the timer and its message."""
        timeout_s = self._server.concurrency_config.session_timeout
        if timeout_s is not None and session.idle_s >= timeout_s:
            msg = f"{timeout_s:g}"
            raise SessionIdle(msg)

    # -- sending -----------------------------------------------------------------

    async def _refuse(self, error: Exception) -> None:
        """Send the error frame, then close with the error's code."""
        if await self._send(native.error_reply(error_data(error))):
            await self._close(close_code(error))

    async def _send(self, reply: bytes) -> bool:
        """Send a text frame; False when the client is gone."""
        try:
            await self._websocket.send_text(reply.decode())
        except _GONE:
            return False
        return True

    async def _close(self, code: int) -> None:
        websocket = self._websocket
        if websocket.client_state is WebSocketState.DISCONNECTED:
            return
        with suppress(*_GONE):
            await websocket.close(code)
