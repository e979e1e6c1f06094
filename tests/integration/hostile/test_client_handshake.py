"""Servers that answer the upgrade wrongly: `ConnectFailed`, in time, and no more."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import NamedTuple

import pytest
from tests.integration.client.scripted import raw_server
from tests.integration.hostile.frames import PING, frame
from tests.integration.hostile.hostile_server import (
    hostile,
    hostile_in_thread,
    read_all,
    works,
)
from tests.integration.hostile.measures import leaving_no_file, leaving_nothing

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed

TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x46"  # fatal, protocol_version: RFC 8446 §6
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\n"
UPGRADE = SWITCH + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
LONG_CONNECT_S = 5.0


class Row(NamedTuple):
    """What the server answers, and what comes of it."""

    name: str
    answer: bytes
    words: str
    status: int | None = None

    def __repr__(self) -> str:
        return self.name


def refused(status, headers=b""):
    answer = b"HTTP/1.1 %d No\r\n%sContent-Length: 0\r\n\r\n" % (status, headers)
    return Row(f"status-{status}", answer, f"HTTP status {status}", status)


ROWS = [
    refused(404),
    refused(302, b"Location: ws://127.0.0.1:1/ws\r\n"),
    refused(407, b"Proxy-Authenticate: Basic realm=x\r\n"),
    refused(426, b"Sec-WebSocket-Version: 8\r\n"),
    refused(503),
    refused(200),
    Row("101-without-accept", UPGRADE + b"\r\n", "no Sec-WebSocket-Accept"),
    Row(
        "101-with-a-wrong-accept",
        UPGRADE + b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
        "does not answer the key",
    ),
    Row("101-of-nothing", SWITCH + b"\r\n", "does not name"),
    Row("frames-at-once", frame(PING, b"x") * 20, "not an HTTP/1.1 head"),
    Row("tls-alert", TLS_ALERT, "not an HTTP/1.1 head"),
    Row("an-smtp-server", b"220 mail ESMTP\r\n\r\n", "not an HTTP/1.1 head"),
    Row("a-binary-answer", bytes(range(256)), "not an HTTP/1.1 head"),
    Row("a-broken-header", SWITCH + b": x\r\n\r\n", "malformed HTTP header"),
    Row("many-headers", SWITCH + b"a: b\r\n" * 101 + b"\r\n", "limit of 100"),
    Row("a-long-header", SWITCH + b"a: " + b"b" * 70_000, "limit of 65536 bytes"),
    Row("a-long-line", b"H" * 70_000, "not an HTTP/1.1 head"),
]


@pytest.mark.parametrize("row", ROWS, ids=repr)
async def test_a_wrong_answer_is_a_connect_failure_and_the_client_lives(row):
    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(server.instead_of_101(row.answer))
        client = GenericEnvClient(server.url, connect_timeout_s=LONG_CONNECT_S)
        start = time.monotonic()
        with pytest.raises(ConnectFailed) as told:
            await client.connect()
        took_s = time.monotonic() - start
        await works(client)
        await client.close()

    assert row.words in str(told.value)
    assert row.status == told.value.status
    assert took_s < LONG_CONNECT_S / 2


@pytest.mark.usefixtures("io_thread")
@pytest.mark.parametrize("row", ROWS[::6], ids=repr)
def test_the_blocking_client_hears_the_same(row):
    with leaving_no_file(), hostile_in_thread() as server:
        server.behaviours.append(server.instead_of_101(row.answer))
        client = GenericEnvClient(server.url, connect_timeout_s=LONG_CONNECT_S).sync()
        with pytest.raises(ConnectFailed, match=row.words):
            client.connect()
        client.reset()
        step = client.step({"it": "good"})
        client.close()

    assert {"it": "good"} == step.observation["echo"]


@pytest.mark.parametrize("length", [0, 1, len(SWITCH), len(UPGRADE)])
async def test_half_a_handshake_is_given_up_in_time(length):
    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(server.instead_of_101(UPGRADE[:length]))
        client = GenericEnvClient(server.url, connect_timeout_s=0.2)
        start = time.monotonic()
        with pytest.raises(ConnectFailed):
            await client.connect()
        took_s = time.monotonic() - start
        await works(client)
        await client.close()

    assert 0.15 < took_s < 1


async def test_an_answer_that_trickles_in_byte_by_byte_is_taken():
    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(server.serve_trickling)
        async with GenericEnvClient(server.url) as client:
            await works(client)

    assert not server.behaviours


async def test_an_answer_that_trickles_without_end_is_given_up_in_time():
    async def trickle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(UPGRADE + b"X-Slow: ")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.002)

    async with leaving_nothing(), hostile(trickle) as server:
        client = GenericEnvClient(server.url, connect_timeout_s=0.2)
        start = time.monotonic()
        with pytest.raises(ConnectFailed):
            await client.connect()
        took_s = time.monotonic() - start
        await works(client)
        await client.close()

    assert took_s < 1


async def test_a_tls_client_at_a_plain_server_is_a_connect_failure():
    heard = []

    async def plain(reader, writer):
        heard.append(await reader.read(65536))
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await read_all(reader)

    async with leaving_nothing(), raw_server(plain) as port:
        client = GenericEnvClient(
            f"https://127.0.0.1:{port}", connect_timeout_s=LONG_CONNECT_S
        )
        with pytest.raises(ConnectFailed) as told:
            await client.connect()

    assert isinstance(told.value.__cause__, ssl.SSLError)
    assert heard[0].startswith(b"\x16\x03\x01")  # a TLS ClientHello
    assert f"wss://127.0.0.1:{port}/ws" == told.value.url


async def test_a_tls_client_at_a_plain_server_that_is_silent_is_given_up_in_time():
    async def silent(reader, writer):  # noqa: ARG001 - the form of a handler
        await read_all(reader)

    async with leaving_nothing(), raw_server(silent) as port:
        client = GenericEnvClient(f"https://127.0.0.1:{port}", connect_timeout_s=0.2)
        start = time.monotonic()
        with pytest.raises(ConnectFailed):
            await client.connect()
        took_s = time.monotonic() - start

    assert took_s < 1


async def test_a_plain_client_at_a_tls_server_is_a_connect_failure():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    async def tls(reader, writer):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(await reader.read(65536))
        with pytest.raises(ssl.SSLError):
            session.do_handshake()
        writer.write(outgoing.read())  # the alert, if the library sends one

    async with leaving_nothing(), hostile(tls) as server:
        client = GenericEnvClient(server.url, connect_timeout_s=LONG_CONNECT_S)
        with pytest.raises(ConnectFailed):
            await client.connect()
        await works(client)
        await client.close()
