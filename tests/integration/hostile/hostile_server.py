"""A server of raw bytes: hostile for as many connections as told, then a good one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.integration.client.scripted import cut, raw_server, upgrade_answer
from tests.integration.hostile.frames import (
    CLOSE,
    close_code,
    frame,
    message,
    read_frame,
)
from tests.support.in_thread import in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

READ_BYTES = 65536
LIMIT_BYTES = 100 << 20  # the longest message that either side takes by default


@dataclass
class HostileServer:
    """Serve each connection by the next behaviour; well, when none is left."""

    port: int = 0
    behaviours: deque[Behaviour] = field(default_factory=deque)
    close_codes: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader, writer) -> None:
        """Serve a connection."""
        behave = self.behaviours.popleft() if self.behaviours else self.serve_well
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await behave(reader, writer)

    async def serve_well(self, reader, writer) -> None:
        """Be a good server until the client closes."""
        await upgrade(reader, writer)
        while (request := await self.next_request(reader, writer)) is not None:
            writer.write(message(answer_to(request)))

    async def next_request(self, reader, writer) -> dict | None:
        """Return the next message; None behind the client's goodbye."""
        received = await read_frame(reader)
        if received.opcode != CLOSE:
            request = json.loads(received.payload)
            return None if request["type"] == "close" else request
        self.close_codes.append(close_code(received))
        writer.write(frame(CLOSE, received.payload))
        return None

    def instead_of_101(self, answer: bytes) -> Behaviour:
        """Answer the upgrade so, and read until the client leaves."""

        async def behave(reader, writer) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await read_all(reader)

        return behave

    def instead_of_an_answer(
        self, answer: bytes, leave: Callable[[asyncio.StreamWriter], None] | None = None
    ) -> Behaviour:
        """Answer the reset well and the first step so, then listen or `leave`."""

        async def behave(reader, writer) -> None:
            await self.begin_answer(reader, writer)
            writer.write(answer)
            if leave is not None:
                leave(writer)
                return
            while await self.next_request(reader, writer) is not None:
                pass
            await read_all(reader)

        return behave

    async def begin_answer(self, reader, writer) -> None:
        """Answer the reset well and read the first step."""
        await upgrade(reader, writer)
        writer.write(message(answer_to(await self.next_request(reader, writer))))
        await self.next_request(reader, writer)

    async def serve_trickling(self, reader, writer) -> None:
        """Be a good server that writes a byte at a time."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        await trickle(writer, upgrade_answer(head))
        while (request := await self.next_request(reader, writer)) is not None:
            await trickle(writer, message(answer_to(request)))

    async def trickled(self, answer, reader, writer, *, endless=False) -> None:
        """Answer the first step a byte at a time, perhaps without end."""
        await self.begin_answer(reader, writer)
        await trickle(writer, answer)
        while endless:
            await trickle(writer, b"x")
            await asyncio.sleep(0.002)
        await read_all(reader)


def answer_to(request: dict) -> dict:
    """Return the right answer: what was asked, as the observation."""
    observation = {"echo": request.get("data")}
    data = {"observation": observation, "reward": 1.0, "done": False}
    return {"type": "observation", "data": data}


def send_fin(writer) -> None:
    """End a connection in order, behind what was written."""
    writer.close()


def send_rst(writer) -> None:
    """End a connection by RST; what was written has been handed to the system."""
    cut(writer.transport)


async def trickle(writer, text: bytes) -> None:
    """Write a byte a turn of the loop, each in a segment of its own."""
    writer.transport.get_extra_info("socket").setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )
    for byte in text:
        writer.write(bytes([byte]))
        await asyncio.sleep(0)


async def upgrade(reader, writer) -> None:
    """Take a client's upgrade."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    writer.write(upgrade_answer(head))


async def read_all(reader) -> None:
    """Read until the peer leaves."""
    while await reader.read(READ_BYTES):
        pass


@asynccontextmanager
async def hostile(*behaviours):
    """Serve until the block ends."""
    server = HostileServer(behaviours=deque(behaviours))
    async with raw_server(server.handle) as server.port:
        yield server


def hostile_in_thread():
    """Serve in a thread, for callers that block."""
    return in_thread(hostile(), "hostile")


async def works(client):
    """Go on with the same client, the server being good."""
    await client.reset()
    step = await client.step({"it": "good"})

    assert {"it": "good"} == step.observation["echo"]
