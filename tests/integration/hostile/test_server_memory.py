"""Clients that would fill the server's memory: what they get is measured."""

from __future__ import annotations

import pytest
from tests.integration.hostile.frames import (
    BINARY,
    CONTINUATION,
    KEY,
    NO_KEY,
    PING,
    PONG,
    TEXT,
    frame,
)
from tests.integration.hostile.hostile_server import LIMIT_BYTES
from tests.integration.hostile.measures import memory_within
from tests.integration.hostile.victim import Victim, peer, start_server

MiB = 1 << 20
SLACK_MIB = 12
FLOOD_MIB = 24
LITTLE_ONES = 150_000  # fragments of a byte, kept apart, are 6 MiB
LITTLE_MIB = 2
RESET = {"type": "reset", "data": {}}


@pytest.fixture(scope="module")
def victim():
    """Return a server whose memory no other test has filled and left free."""
    with start_server() as process:
        yield Victim(process)


@pytest.mark.parametrize("declared", [LIMIT_BYTES, LIMIT_BYTES + 1, 1 << 62])
async def test_a_declared_length_is_no_reason_to_allocate(victim, declared):
    data = frame(BINARY, b"{}", key=KEY, declared=declared)
    async with victim.unharmed():
        with memory_within(SLACK_MIB, victim.process.pid):
            async with peer(victim) as client:
                await client.upgrade()
                await client.ask(RESET)
                await client.send(data)
                if declared > LIMIT_BYTES:
                    await client.heard()


async def test_a_ping_flood_from_a_client_that_never_reads_is_bounded(victim):
    block = frame(PING, bytes(125), key=NO_KEY) * 500
    async with victim.unharmed() as steps:
        with memory_within(SLACK_MIB, victim.process.pid):
            async with peer(victim, receive_bytes=4096) as client:
                await client.upgrade()
                client.writer.transport.pause_reading()
                before = len(steps)
                for _ in range((FLOOD_MIB << 20) // len(block)):
                    await client.send(block)
                made = len(steps) - before
                client.writer.transport.abort()

    # A read is a quarter of a MiB, and the loop turns, and so serves others, at each:
    # twelve turns a step are enough. Read 32 times a turn, the flood lets one step by.
    assert made >= 4 * FLOOD_MIB // 12


@pytest.mark.parametrize(
    "little",
    [frame(CONTINUATION, b"x", final=False, key=KEY), frame(PONG, key=KEY)],
    ids=["fragments", "pongs"],
)
async def test_frames_that_carry_little_take_little(victim, little):
    async with victim.unharmed(), peer(victim) as client:
        await client.upgrade()
        await client.send(frame(TEXT, final=False, key=KEY))
        with memory_within(LITTLE_MIB, victim.process.pid):
            for _ in range(LITTLE_ONES // 1000):
                await client.send(little * 1000)
                await client.is_read()
