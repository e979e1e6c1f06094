"""Which answers say that there is a server."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from tests.support.in_thread import in_thread

from openenv.auto._reach import is_available

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
AWAY = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n"


@asynccontextmanager
async def _answering(health, root, asked):
    async def answer(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head)
        reply = health if head.startswith("GET /health ") else root
        if reply is None:
            await reader.read()
        else:
            writer.write(reply)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("health", "root", "available"),
    [
        (OK, MISSING, True),
        (MISSING, OK, True),
        (MISSING, AWAY, False),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", MISSING, False),
        (b"SSH-2.0\r\n", b"x" * 100_000, False),
        (b"", b"", False),
    ],
)
def test_200_on_health_or_else_on_the_root(health, root, available):
    asked = []
    with in_thread(_answering(health, root, asked), "answering") as url:
        assert available == is_available(url, 5.0, {"headers": {"X-A": "b"}})

    assert all("X-A: b" in head for head in asked)
    assert (1 if health is OK else 2) == len(asked)


def test_a_server_that_says_nothing_costs_the_time_given():
    with in_thread(_answering(None, None, []), "answering") as url:
        began = time.monotonic()
        assert not is_available(url, 0.1, {})

        assert 2.0 > time.monotonic() - began


async def test_it_may_be_asked_in_a_running_loop():
    with in_thread(_answering(OK, OK, []), "answering") as url:
        assert is_available(url, 5.0, {})
    assert not is_available(url, 5.0, {})
