"""Servers that would fill the client's memory: what they get is measured."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.integration.hostile.frames import (
    BINARY,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    frame,
)
from tests.integration.hostile.hostile_server import (
    LIMIT_BYTES,
    hostile,
    read_all,
    works,
)
from tests.integration.hostile.measures import leaving_nothing, memory_within

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import (
    ConnectFailed,
    ConnectionClosed,
    LimitExceeded,
    RemoteProtocolError,
    RequestTimeout,
)

MiB = 1 << 20
NOTHINGS = 400_000  # kept as empty vectors they were 9 MiB
RESERVED = 0x3
# What reading and its buffers take, of both sides: the server lives here, too.
SLACK_MIB = 8


@pytest.mark.parametrize("declared", [LIMIT_BYTES, LIMIT_BYTES + 1, (1 << 63) - 1])
async def test_a_declared_length_is_no_reason_to_allocate(declared):
    answer = frame(BINARY, b"{}", declared=declared)
    error = RequestTimeout if declared == LIMIT_BYTES else LimitExceeded
    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(server.instead_of_an_answer(answer))
        async with GenericEnvClient(server.url) as client:
            await client.reset()
            with memory_within(SLACK_MIB), pytest.raises(error):
                await client.step({"it": "hostile"}, timeout_s=0.3)
            await works(client)


async def test_a_hundred_mebibytes_and_a_byte_take_no_more_than_they_are():
    block = frame(CONTINUATION, bytes(MiB), final=False)

    async def flood(reader, writer):
        await server.begin_answer(reader, writer)
        writer.write(frame(BINARY, final=False))
        for _ in range(LIMIT_BYTES // MiB):
            writer.write(block)
            await writer.drain()
        writer.write(frame(CONTINUATION, b"x"))
        await read_all(reader)

    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(flood)
        async with GenericEnvClient(server.url) as client:
            await client.reset()
            # A vector that grows by doubling holds three times its content at worst.
            with memory_within(3 * 100 + SLACK_MIB), pytest.raises(LimitExceeded):
                await client.step({"it": "hostile"}, timeout_s=20)
            await works(client)


@pytest.mark.parametrize(
    "nothing",
    [frame(CONTINUATION, final=False), frame(PONG)],
    ids=["empty-fragments", "pongs"],
)
async def test_frames_that_carry_nothing_take_nothing(nothing):
    async def flood(reader, writer):
        await server.begin_answer(reader, writer)
        writer.write(frame(TEXT, final=False))
        for _ in range(NOTHINGS // 1000):
            writer.write(nothing * 1000)
            await writer.drain()
        writer.write(frame(RESERVED))  # tells that all before it was read
        await read_all(reader)

    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(flood)
        async with GenericEnvClient(server.url) as client:
            await client.reset()
            with memory_within(SLACK_MIB), pytest.raises(RemoteProtocolError):
                await client.step({"it": "hostile"}, timeout_s=20)
            await works(client)


async def test_a_ping_flood_from_a_server_that_never_reads_is_bounded():
    async def flood(reader, writer):
        await server.begin_answer(reader, writer)
        writer.transport.pause_reading()
        sock = writer.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while True:
            # The client answers so many of a read, of more only the last.
            writer.write(frame(PING, bytes(125)) * 100)
            await asyncio.sleep(0)
            await writer.drain()

    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(flood)
        client = GenericEnvClient(server.url, max_message_size_mb=0.1)
        await client.reset()
        with memory_within(SLACK_MIB), pytest.raises(ConnectionClosed):
            await client.step({"it": "hostile"}, timeout_s=20)
        await works(client)
        await client.close()


@pytest.mark.parametrize("line", [b"X-Flood: x\r\n", b"x"], ids=["fields", "a-field"])
async def test_a_flood_of_headers_is_bounded(line):
    async def flood(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nX: ")
        while True:
            writer.write(line * 5000)
            await writer.drain()

    async with leaving_nothing(), hostile(flood) as server:
        client = GenericEnvClient(server.url, connect_timeout_s=20)
        with memory_within(SLACK_MIB), pytest.raises(ConnectFailed, match="limit of"):
            await client.connect()
        await works(client)
        await client.close()


async def test_a_refusal_with_an_endless_body_is_bounded():
    async def flood(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + bytes(4096) + b"\r\n")
            await writer.drain()

    async with leaving_nothing(), hostile(flood) as server:
        client = GenericEnvClient(server.url, connect_timeout_s=20)
        with memory_within(SLACK_MIB), pytest.raises(ConnectFailed) as told:
            await client.connect()
        await works(client)
        await client.close()

    assert 403 == told.value.status
