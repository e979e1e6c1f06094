"""Servers that answer a step with wrong frames: one typed error, no more harm."""

from __future__ import annotations

import random
import time
from typing import NamedTuple

import pytest
from tests.integration.hostile.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    TEXT,
    frame,
    message,
    random_frames,
)
from tests.integration.hostile.hostile_server import (
    LIMIT_BYTES,
    hostile,
    hostile_in_thread,
    send_fin,
    works,
)
from tests.integration.hostile.measures import leaving_no_file, leaving_nothing

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import (
    ConnectionClosed,
    LimitExceeded,
    RemoteProtocolError,
    SessionLost,
)

MiB = 1 << 20
FRAMES = 10_000
FRAMES_A_CONNECTION = 10


class Row(NamedTuple):
    """What the server sends, and what comes of it."""

    name: str
    answer: bytes
    error: type[Exception]
    words: str
    close_code: int

    def __repr__(self) -> str:
        return self.name


def remote(name, answer, words, close_code=1002):
    return Row(name, answer, RemoteProtocolError, words, close_code)


def too_big(name, answer):
    return Row(name, answer, LimitExceeded, f"limit of {LIMIT_BYTES} bytes", 1009)


ROWS = [
    *(
        remote(f"reserved-bit-{bit}", frame(TEXT, b"{}", reserved=bit), "reserved bit")
        for bit in (1, 2, 4)
    ),
    *(
        remote(f"opcode-{opcode}", frame(opcode, b"{}"), "reserved opcode")
        for opcode in (0x3, 0x7, 0xB, 0xF)
    ),
    remote("masked", message({}, key=KEY), "masked frame from a server"),
    remote("masked-ping", frame(PING, b"x", key=KEY), "masked frame from a server"),
    remote("long-ping", frame(PING, bytes(126)), "longer than 125"),
    remote("fragmented-ping", frame(PING, final=False), "fragmented control"),
    remote("stray-continuation", frame(CONTINUATION, b"{}"), "without a message"),
    remote(
        "text-in-fragments",
        frame(TEXT, b"{", final=False) + frame(TEXT, b"}"),
        "inside a fragmented message",
    ),
    remote("long-form-of-a-length", frame(TEXT, b"{}", width=2), "shortest form"),
    remote("top-bit-of-a-length", frame(TEXT, declared=1 << 63), "highest bit"),
    remote("close-of-a-byte", frame(CLOSE, b"\x03"), "one byte"),
    remote("close-1005", frame(CLOSE, b"\x03\xed"), "must not be sent"),
    remote("close-not-utf8", frame(CLOSE, b"\x03\xe8\xff"), "UTF-8", 1007),
    remote("not-utf8", frame(TEXT, b'{"a":"\xff"}'), "UTF-8", 1007),
    remote("surrogate-in-utf8", frame(TEXT, b'"\xed\xa0\x80"'), "UTF-8", 1007),
    remote(
        "not-utf8-in-fragments",
        frame(TEXT, b'"\xe2\x82', final=False) + frame(CONTINUATION, b'"'),
        "UTF-8",
        1007,
    ),
    too_big("giant-length", frame(TEXT, declared=(1 << 63) - 1)),
    too_big("a-byte-over-the-limit", frame(BINARY, declared=LIMIT_BYTES + 1)),
    too_big(
        "a-byte-over-the-limit-in-fragments",
        frame(BINARY, b"{}", final=False)
        + frame(CONTINUATION, declared=LIMIT_BYTES - 1),
    ),
]


async def fail_a_step(client, error):
    """Reset and step; the step fails, and the session is lost once."""
    await client.reset()
    with pytest.raises((RemoteProtocolError, LimitExceeded, ConnectionClosed)) as told:
        await client.step({"it": "hostile"}, timeout_s=5)
    with pytest.raises(SessionLost):
        await client.step({"it": "behind"})

    assert error is type(told.value)
    return told.value


@pytest.mark.parametrize("row", ROWS, ids=repr)
async def test_a_wrong_frame_is_one_typed_error_and_the_client_lives(row):
    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(server.instead_of_an_answer(row.answer))
        async with GenericEnvClient(server.url) as client:
            told = await fail_a_step(client, row.error)
            await works(client)

    assert row.words in str(told)
    assert [row.close_code] == server.close_codes


@pytest.mark.usefixtures("io_thread")
@pytest.mark.parametrize("row", ROWS[::6], ids=repr)
def test_the_blocking_client_hears_the_same(row):
    with leaving_no_file(), hostile_in_thread() as server:
        server.behaviours.append(server.instead_of_an_answer(row.answer))
        with GenericEnvClient(server.url).sync() as client:
            client.reset()
            with pytest.raises(row.error, match=row.words):
                client.step({"it": "hostile"}, timeout_s=5)
            client.reset()
            step = client.step({"it": "good"})

    assert {"it": "good"} == step.observation["echo"]


@pytest.mark.parametrize("row", ROWS, ids=repr)
async def test_bytes_one_at_a_time_are_the_same_error(row):
    async def trickle(reader, writer):
        await server.trickled(row.answer, reader, writer)

    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(trickle)
        async with GenericEnvClient(server.url) as client:
            told = await fail_a_step(client, row.error)
            await works(client)

    assert row.words in str(told)


async def test_ten_thousand_random_frames_never_make_an_answer():
    rng = random.Random(6455)
    told = []
    async with leaving_nothing(), hostile() as server:
        client = GenericEnvClient(server.url)
        for _ in range(FRAMES // FRAMES_A_CONNECTION):
            noise = b"".join(random_frames(rng, FRAMES_A_CONNECTION, key=None))
            server.behaviours.append(server.instead_of_an_answer(noise, send_fin))
            await client.reset()
            with pytest.raises(Exception) as failed:  # noqa: PT011 - counted below
                await client.step({"it": "hostile"}, timeout_s=5)
            told.append(type(failed.value))
        await works(client)
        await client.close()

    assert {RemoteProtocolError, LimitExceeded, ConnectionClosed} == set(told)


async def test_a_server_that_trickles_an_answer_for_ever_is_given_up_in_time():
    async def trickle(reader, writer):
        await server.trickled(frame(TEXT, declared=MiB), reader, writer, endless=True)

    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(trickle)
        async with GenericEnvClient(server.url) as client:
            await client.reset()
            start = time.monotonic()
            with pytest.raises(TimeoutError) as told:
                await client.step({"it": "hostile"}, timeout_s=0.2)
            took_s = time.monotonic() - start
            await works(client)

    assert "step" == told.value.operation
    assert took_s < 1
