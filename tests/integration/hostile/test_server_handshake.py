"""Clients whose request is no upgrade: the right status, and no environment."""

from __future__ import annotations

import ssl
from typing import NamedTuple

import pytest
from tests.integration.hostile.frames import upgrade_request
from tests.integration.hostile.victim import peer


class Row(NamedTuple):
    """What a client sends, and the status it gets."""

    name: str
    request: bytes
    status: int

    def __repr__(self) -> str:
        return self.name


def client_hello() -> bytes:
    """Return the first bytes of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = ssl.create_default_context().wrap_bio(
        incoming, outgoing, server_hostname="localhost"
    )
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


ROWS = [
    Row("without-a-key", upgrade_request(sec_websocket_key=None), 400),
    Row("a-short-key", upgrade_request(sec_websocket_key="AAAA"), 400),
    Row("version-8", upgrade_request(sec_websocket_version="8"), 400),
    Row("without-a-version", upgrade_request(sec_websocket_version=None), 400),
    Row("a-post", upgrade_request().replace(b"GET", b"POST"), 405),
    Row("a-body", upgrade_request(content_length="5") + b"hello", 400),
    Row("another-path", upgrade_request("/nowhere"), 403),
    Row("tls", client_hello(), 400),
    Row("http-2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    Row("no-http", b"\x00\x01\x02\x03\r\n\r\n", 400),
    Row("a-broken-header", b"GET /ws HTTP/1.1\r\nno colon\r\n\r\n", 400),
    Row(
        "many-headers",
        upgrade_request(**{f"x_{number}": "y" for number in range(200)}),
        431,
    ),
    Row("a-long-header", upgrade_request(x_long="y" * 100_000), 431),
    Row("a-long-target", upgrade_request("/ws?" + "y" * 100_000), 414),
]


@pytest.mark.parametrize("row", ROWS, ids=repr)
async def test_a_wrong_request_is_refused_with_its_status(victim, row):
    before = victim.lives()
    async with victim.unharmed(), peer(victim) as client:
        await client.send(row.request)
        answer = await client.rest()
    after = victim.lives()

    assert answer.startswith(b"HTTP/1.1 %d " % row.status), answer[:200]
    assert 1 == after["opened"] - before["opened"]  # the well-behaved client's


@pytest.mark.parametrize("count", [1, 50])
async def test_half_a_handshake_holds_a_socket_and_nothing_else(victim, count):
    half = upgrade_request()[:-2]
    before = victim.lives()
    async with victim.unharmed():
        for _ in range(count):
            async with peer(victim) as client:
                await client.send(half)
    after = victim.lives()

    assert 1 == after["opened"] - before["opened"]
