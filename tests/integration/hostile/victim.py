"""A server in a process of its own, its hostile clients, and a well-behaved one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path

from tests.integration.client.scripted import until
from tests.integration.hostile.frames import (
    CLOSE,
    KEY,
    PING,
    Received,
    close_code,
    frame,
    message,
    read_frame,
    upgrade_request,
)
from tests.integration.hostile.measures import open_files
from tests.support.processes import ChildProcess

from openenv.core.generic_client import GenericEnvClient

HERE = Path(__file__).parent
SERVE = HERE.parent / "first_light" / "serve.py"
DEADLINE_S = 5.0
ENDED = "ended"  # the connection is over, without a Close frame


def start_server() -> ChildProcess:
    """Start the server; `wait_for_port` tells its port."""
    return ChildProcess([sys.executable, str(SERVE), "applications:mortal", str(HERE)])


class Victim:
    """The server as its guards see it."""

    def __init__(self, process: ChildProcess) -> None:
        self.process = process
        self.port = process.wait_for_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lives(self) -> dict[str, int]:
        """Return what the server counts."""
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port)) as connection:
            connection.request("GET", "/lives", headers={"Connection": "close"})
            return json.load(connection.getresponse())

    @asynccontextmanager
    async def unharmed(self):
        """Check a block: another client steps on meanwhile, and nothing is left.

        Gives the list of the steps that the other client has made so far.
        """
        before, files = self.lives(), open_files(self.process.pid)
        threads = self.process.threads()
        numbers: list[int] = []
        steady = asyncio.create_task(self._step_on(numbers))
        await until(lambda: numbers or steady.done())
        try:
            yield numbers
            told = len(numbers)
            await until(lambda: len(numbers) > told or steady.done())
        finally:
            steady.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await steady
        await until(lambda: self._is_settled(before, files))

        after = self.lives()
        assert before["closed_again"] == after["closed_again"]
        assert self.process.threads() <= max(threads, POOL_THREADS)
        assert "Traceback" not in self.process.output()

    def _is_settled(self, before: dict[str, int], files: int) -> bool:
        now = self.lives()
        return (
            now["opened"] == now["closed"]
            and now["tasks"] <= before["tasks"]
            and open_files(self.process.pid) <= files
        )

    async def _step_on(self, numbers: list[int]) -> None:
        async with GenericEnvClient(self.url) as client:
            await client.reset()
            number = 0
            while True:
                number += 1
                step = await client.step({"number": number}, timeout_s=DEADLINE_S)
                assert number == step.observation["number"]
                numbers.append(number)
                await asyncio.sleep(0.002)  # leaves the processor to the others


# The pool, and the threads that every server has; see first_light/test_figures.py.
POOL_THREADS = 64


class Peer:
    """A connection of raw bytes."""

    def __init__(self, reader, writer) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send; a peer that has gone meanwhile is no error."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def upgrade(self) -> None:
        """Do the handshake well."""
        await self.send(upgrade_request())
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head

    async def ask(self, request: dict) -> dict:
        """Send a message well and return the answer."""
        return await self.ask_raw(message(request, key=KEY))

    async def ask_raw(self, data: bytes) -> dict:
        """Send the frame that ends a message and return the answer."""
        await self.send(data)
        return json.loads((await read_frame(self.reader)).payload)

    async def is_read(self) -> None:
        """Wait until the server has read all that was sent so far."""
        await self.send(frame(PING, b"read?", key=KEY))
        while (await read_frame(self.reader)).payload != b"read?":
            pass

    async def heard(self, timeout_s: float = DEADLINE_S) -> list[Received | str]:
        """Return all frames until the end, in time."""
        frames: list[Received | str] = []
        async with asyncio.timeout(timeout_s):
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    frames.append(await read_frame(self.reader))
        return frames

    async def ending(self, timeout_s: float = DEADLINE_S) -> int | str:
        """Return the code of the Close frame with which the server ends, in time."""
        codes = [
            close_code(received)
            for received in await self.heard(timeout_s)
            if received.opcode == CLOSE
        ]
        return codes[0] if codes else ENDED

    async def rest(self) -> bytes:
        """Return all bytes until the end, in time."""
        async with asyncio.timeout(DEADLINE_S):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read()
        return b""


@asynccontextmanager
async def peer(victim: Victim, receive_bytes: int | None = None):
    """Connect by TCP until the block ends, perhaps with a small window."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if receive_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", victim.port))
    reader, writer = await asyncio.open_connection(sock=sock)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
