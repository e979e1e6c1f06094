"""Clients that send wrong frames: the right close code, and nobody else is harmed."""

from __future__ import annotations

import asyncio
import json
import random
from typing import NamedTuple

import pytest
from tests.integration.hostile.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    NO_KEY,
    PING,
    TEXT,
    frame,
    message,
    random_frames,
    upgrade_request,
    xor,
)
from tests.integration.hostile.hostile_server import LIMIT_BYTES
from tests.integration.hostile.victim import ENDED, peer

FRAMES = 10_000
FRAMES_A_CONNECTION = 10
AT_ONCE = 8
STEP = {"type": "step", "data": {"number": 7}}


class Row(NamedTuple):
    """What a client sends, and the close code it gets."""

    name: str
    data: bytes
    code: int

    def __repr__(self) -> str:
        return self.name


ROWS = [
    *(
        Row(f"reserved-bit-{bit}", frame(TEXT, b"{}", reserved=bit, key=KEY), 1002)
        for bit in (1, 2, 4)
    ),
    *(
        Row(f"opcode-{opcode}", frame(opcode, b"{}", key=KEY), 1002)
        for opcode in (0x3, 0x7, 0xB, 0xF)
    ),
    Row("unmasked", message(STEP), 1002),
    Row("unmasked-ping", frame(PING, b"x"), 1002),
    Row(
        "masked-with-another-key",
        frame(TEXT, xor(xor(b"{}", KEY), b"\xff\xff\xff\xff"), key=KEY),
        1007,
    ),
    Row("long-ping", frame(PING, bytes(126), key=KEY), 1002),
    Row("fragmented-ping", frame(PING, final=False, key=KEY), 1002),
    Row("stray-continuation", frame(CONTINUATION, b"{}", key=KEY), 1002),
    Row(
        "text-in-fragments",
        frame(TEXT, b"{", final=False, key=KEY) + frame(TEXT, b"}", key=KEY),
        1002,
    ),
    Row("close-of-a-byte", frame(CLOSE, b"\x03", key=KEY), 1002),
    Row("close-1005", frame(CLOSE, b"\x03\xed", key=KEY), 1002),
    Row("close-not-utf8", frame(CLOSE, b"\x03\xe8\xff", key=KEY), 1007),
    Row("not-utf8", frame(TEXT, b'{"a":"\xff"}', key=KEY), 1007),
    Row("surrogate-in-utf8", frame(TEXT, b'"\xed\xa0\x80"', key=KEY), 1007),
    Row(
        "not-utf8-in-fragments",
        frame(TEXT, b'"\xe2\x82', final=False, key=KEY)
        + frame(CONTINUATION, b'"', key=KEY),
        1007,
    ),
    Row("giant-length", frame(TEXT, key=KEY, declared=(1 << 63) - 1), 1009),
    Row("a-byte-over", frame(TEXT, key=KEY, declared=LIMIT_BYTES + 1), 1009),
    Row(
        "a-byte-over-in-fragments",
        frame(BINARY, b"{}", final=False, key=KEY)
        + frame(CONTINUATION, key=KEY, declared=LIMIT_BYTES - 1),
        1009,
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=repr)
async def test_a_wrong_frame_ends_the_session_with_its_code(victim, row):
    async with victim.unharmed(), peer(victim) as client:
        await client.upgrade()
        await client.ask(STEP)
        await client.send(row.data)
        code = await client.ending()

    assert row.code == code


async def test_bytes_one_at_a_time_are_the_same_session(victim):
    step = message(STEP, key=KEY)
    async with victim.unharmed(), peer(victim) as client:
        for byte in upgrade_request():
            await client.send(bytes([byte]))
            await asyncio.sleep(0)
        head = await client.reader.readuntil(b"\r\n\r\n")
        for byte in step:
            await client.send(bytes([byte]))
            await asyncio.sleep(0)
        answer = await client.ask({"type": "state"})
        state = await client.ask({"type": "state"})

    assert head.startswith(b"HTTP/1.1 101 ")
    assert 7 == answer["data"]["observation"]["number"]
    assert 1 == state["data"]["step_count"]


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
async def test_a_step_in_fragments_of_a_byte_between_pings_is_made_once(victim, opcode):
    step = json.dumps(STEP).encode()
    async with victim.unharmed(), peer(victim) as client:
        await client.upgrade()
        await client.send(frame(opcode, final=False, key=KEY))
        for byte in step:
            await client.send(frame(CONTINUATION, bytes([byte]), final=False, key=KEY))
            await client.is_read()
        answer = await client.ask_raw(frame(CONTINUATION, key=KEY))
        state = await client.ask({"type": "state"})

    assert 7 == answer["data"]["observation"]["number"]
    assert 1 == state["data"]["step_count"]


async def test_ten_thousand_random_frames_close_each_environment_once(victim):
    rng = random.Random(6455)
    before = victim.lives()
    codes = []

    async def attack(noise):
        async with peer(victim) as client:
            await client.upgrade()
            await client.ask(STEP)
            await client.send(noise)
            client.writer.write_eof()
            codes.append(await client.ending())

    async with victim.unharmed():
        for _ in range(FRAMES // FRAMES_A_CONNECTION // AT_ONCE):
            await asyncio.gather(*(attack(noise(rng)) for _ in range(AT_ONCE)))
    after = victim.lives()

    assert 1 + FRAMES // FRAMES_A_CONNECTION == after["opened"] - before["opened"]
    assert {1002, 1009, ENDED} <= set(codes) <= {1000, 1002, 1005, 1007, 1009, ENDED}


def noise(rng):
    return b"".join(random_frames(rng, FRAMES_A_CONNECTION, key=KEY))


async def test_a_hundred_mebibytes_and_a_byte_are_1009(victim):
    block = frame(CONTINUATION, bytes(1 << 20), final=False, key=NO_KEY)
    async with victim.unharmed(), peer(victim) as client:
        await client.upgrade()
        await client.send(frame(BINARY, final=False, key=NO_KEY))
        for _ in range(LIMIT_BYTES >> 20):
            await client.send(block)
        await client.send(frame(CONTINUATION, b"x", key=NO_KEY))
        code = await client.ending()

    assert 1009 == code
