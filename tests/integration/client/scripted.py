"""A server of the classic protocol that does what its messages tell it to.

Each connection is one session with a count of steps. What a reset or step carries
steers the answer: ``sleep`` seconds before it, ``drop`` (cut with RST instead),
``close`` with a code, ``error`` with a code, ``size`` bytes of observation, or the
whole ``reply``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import socket
import struct
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed


@dataclass
class ScriptedServer:
    """Tell what came in, and steer what goes out."""

    port: int = 0
    capacity: int | None = None
    refuse_late: bool = False
    response_headers: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    received: list[dict] = field(default_factory=list)
    request_headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    sessions: int = 0
    active: int = 0
    said_goodbye: int = 0
    connections: set = field(default_factory=set)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def until(self, condition, timeout_s: float = 5.0) -> None:
        """Wait until a condition on this server holds."""
        async with asyncio.timeout(timeout_s), self.changed:
            await self.changed.wait_for(condition)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def serve_session(self, connection) -> None:
        self.paths.append(connection.request.path)
        self.request_headers.append(dict(connection.request.headers.raw_items()))
        if self.capacity is not None and self.active >= self.capacity:
            await self._refuse(connection)
            return
        self.sessions += 1
        self.active += 1
        self.connections.add(connection)
        try:
            await self._session(connection, self.sessions)
        except ConnectionClosed:
            pass
        finally:
            self.active -= 1
            self.connections.discard(connection)
            await self._notify()

    async def _refuse(self, connection) -> None:
        if self.refuse_late:
            await connection.recv()
        data = {
            "message": f"Server at capacity: {self.active}/{self.capacity} sessions "
            "active. Cannot accept new connections.",
            "code": "CAPACITY_REACHED",
            "active_sessions": self.active,
            "max_sessions": self.capacity,
        }
        await connection.send(json.dumps({"type": "error", "data": data}))
        await connection.close(1013)

    async def _session(self, connection, number: int) -> None:
        steps = 0
        async for text in connection:
            message = json.loads(text)
            self.received.append(message)
            await self._notify()
            if message["type"] == "close":
                self.said_goodbye += 1
                return
            steps += message["type"] == "step"
            reply = await self._answer(connection, message, number, steps)
            if reply is None:
                return
            await connection.send(json.dumps(reply))

    async def _sleep(self, seconds: float) -> None:
        if seconds:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), seconds)

    async def _answer(self, connection, message, session: int, steps: int):
        data = message.get("data", {})
        await self._sleep(data.get("sleep", 0))
        if "drop" in data:
            cut(connection.transport)
            return None
        if "close" in data:
            await connection.close(data["close"], "told to")
            return None
        if "reply" in data:
            return data["reply"]
        if "error" in data:
            return {"type": "error", "data": {"message": "no", "code": data["error"]}}
        if message["type"] == "state":
            return {"type": "state", "data": {"session": session, "steps": steps}}
        observation = {"echo": data, "session": session, "steps": steps}
        if "size" in data:
            observation["blob"] = "x" * data["size"]
        reply = {
            "type": "observation",
            "data": {"observation": observation, "reward": 0.5, "done": False},
        }
        if self.ignored and message["type"] == "reset":
            reply["ext"] = {"ignored": self.ignored}
        return reply


def cut(transport) -> None:
    """End a connection by RST, as a crashed host does."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


@asynccontextmanager
async def scripted(port: int = 0, tls=None, **settings):
    """Serve; a port may be given to come back after a restart."""
    server = ScriptedServer(**settings)

    def add_headers(connection, request, response):  # noqa: ARG001 - the hook's form
        for name, value in server.response_headers.items():
            response.headers[name] = value
        return response

    async with serve(
        server.serve_session,
        "127.0.0.1",
        port,
        ssl=tls,
        process_response=add_headers,
        max_size=None,
        compression=None,
        close_timeout=0.2,
    ) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        try:
            yield server
        finally:
            server.ending.set()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


async def until(condition, timeout_s: float = 5.0) -> None:
    """Poll a condition that nothing announces."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0.005)


@asynccontextmanager
async def raw_server(handle, host: str = "127.0.0.1", tls=None):
    """Serve TCP by a coroutine of reader and writer; leave nothing behind."""
    tasks, writers = [], []

    async def guarded(reader, writer):
        tasks.append(asyncio.current_task())
        writers.append(writer)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await handle(reader, writer)
        writer.close()

    async with await asyncio.start_server(guarded, host, 0, ssl=tls) as listening:
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            for task in tasks:
                task.cancel()
            for writer in writers:
                writer.transport.abort()
            for writer in writers:
                with contextlib.suppress(OSError):
                    await writer.wait_closed()


def upgrade_answer(head: str) -> bytes:
    """Return the 101 answer to an upgrade request, by RFC 6455 §4.2.2."""
    key = re.search(r"(?i)sec-websocket-key: (\S+)", head).group(1)
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())
    accept = base64.b64encode(digest.digest()).decode()
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    ).encode()
