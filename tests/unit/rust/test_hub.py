"""The sockets of one loop: what the driver hears, and what the peer gets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct

import pytest

from openenv import _rust
from openenv.core._client.codec import codec_of

if not hasattr(_rust, "Hub"):
    pytest.skip("Rust reads sockets on Linux only", allow_module_level=True)

PLENTY = 1 << 30


class Driver(asyncio.Protocol):
    due = float("inf")

    def __init__(self):
        self.lost = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc):
        self.lost.set_result(exc)


@pytest.fixture
async def hub():
    loop = asyncio.get_running_loop()
    hub = _rust.Hub(loop)
    loop.add_reader(hub.fileno(), hub.run)
    yield hub
    if hub.fileno() != -1:
        loop.remove_reader(hub.fileno())
        hub.close()


def endpoint():
    return _rust.ClientEndpoint(
        "host",
        "/ws",
        [],
        max_message_bytes=1 << 20,
        ping_interval_s=None,
        ping_timeout_s=None,
    )


@pytest.fixture
def tcp_pair():
    with contextlib.ExitStack() as stack:
        yield lambda: _tcp_pair(stack)


def _tcp_pair(stack):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = stack.enter_context(socket.create_connection(listener.getsockname()))
        theirs = stack.enter_context(listener.accept()[0])
    ours.setblocking(False)
    return ours, theirs


@pytest.fixture
def attached(hub, tcp_pair):
    def attached(max_unsent_bytes=PLENTY):
        ours, theirs = tcp_pair()
        driver = Driver()
        transport = hub.attach(ours, driver, endpoint(), max_unsent_bytes)
        return transport, driver, theirs

    return attached


async def received(peer, count):
    peer.setblocking(False)
    loop, got = asyncio.get_running_loop(), bytearray()
    while len(got) < count:
        got += await loop.sock_recv(peer, 1 << 20)
    return bytes(got)


async def test_a_socket_is_taken_over(hub, tcp_pair):
    ours, _ = tcp_pair()
    hub.attach(ours, Driver(), endpoint(), PLENTY)

    assert -1 == ours.fileno()
    assert 1 == len(hub)


async def test_what_is_written_arrives(attached):
    transport, _, peer = attached()
    transport.write(b"hello")

    assert b"hello" == await received(peer, 5)
    assert 0 == transport.get_write_buffer_size()


async def test_what_the_socket_does_not_take_follows_in_order(hub, attached):
    transport, driver, peer = attached()
    data = os.urandom(20_000_000)
    transport.write(data[:19_000_000])
    transport.write(data[19_000_000:])
    assert transport.get_write_buffer_size() > 0
    transport.close()
    assert transport.is_closing()

    assert data == await received(peer, len(data))
    assert await driver.lost is None
    assert 0 == len(hub)


async def test_nothing_is_sent_after_close(attached):
    transport, driver, peer = attached()
    transport.write(b"first")
    transport.close()
    transport.write(b"second")
    await driver.lost

    assert b"first" == await received(peer, 5)
    assert b"" == peer.recv(10)


async def test_the_peers_end_is_told_without_an_error(hub, attached):
    _, driver, peer = attached()
    peer.close()

    assert await asyncio.wait_for(driver.lost, 5) is None
    assert 0 == len(hub)


async def test_a_reset_is_told_with_its_error(attached):
    _, driver, peer = attached()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()

    assert isinstance(await asyncio.wait_for(driver.lost, 5), ConnectionResetError)


async def test_abort_ends_at_once_and_tells_once(attached):
    transport, driver, peer = attached()
    transport.abort()
    transport.abort()
    transport.close()

    assert not driver.lost.done()  # in a turn of its own
    assert await driver.lost is None
    assert b"" == peer.recv(1)
    transport.write(b"x")


async def test_a_peer_that_does_not_read_is_cut_off(attached):
    transport, driver, _peer = attached(max_unsent_bytes=1_000_000)
    for _ in range(100):
        transport.write(bytes(1_000_000))
        if transport.is_closing():
            break

    assert await asyncio.wait_for(driver.lost, 5) is None


async def test_what_comes_is_for_the_endpoint(hub, tcp_pair):
    ours, theirs = tcp_pair()
    driver, machine = Driver(), endpoint()
    transport = hub.attach(ours, driver, machine, PLENTY)
    loop = asyncio.get_running_loop()
    opened = loop.create_future()
    transport.write(machine.connect(opened, float("inf"), loop.time()))
    await received(theirs, 10)
    theirs.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    with pytest.raises(ConnectionError, match="404"):
        await asyncio.wait_for(opened, 5)
    assert await asyncio.wait_for(driver.lost, 5) is None
    assert b"" == await loop.sock_recv(theirs, 10)


async def test_a_request_needs_an_open_connection_and_its_own_loop(attached):
    transport, _, _peer = attached()
    decoder = codec_of(dict, dict).result_decoder

    assert transport.request("step", {}, decoder, None) is None
    assert await asyncio.to_thread(transport.request, "step", {}, decoder, 1.0) is None


async def test_a_closed_hub_lets_go_of_all(hub, attached, tcp_pair):
    loop = asyncio.get_running_loop()
    pairs = [attached() for _ in range(3)]
    loop.remove_reader(hub.fileno())
    hub.close()

    assert -1 == hub.fileno()
    for transport, driver, peer in pairs:
        assert await driver.lost is None
        assert b"" == peer.recv(1)
        assert transport.is_closing()
    ours, _theirs = tcp_pair()
    with pytest.raises(RuntimeError, match="has ended"):
        hub.attach(ours, Driver(), endpoint(), PLENTY)
    hub.run()


async def test_a_driver_that_fails_is_told_to_the_loop(hub, tcp_pair):
    class Failing(Driver):
        def connection_lost(self, exc):
            super().connection_lost(exc)
            raise ZeroDivisionError

    told = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    ours, theirs = tcp_pair()
    driver = Failing()
    hub.attach(ours, driver, endpoint(), PLENTY)
    theirs.close()
    await driver.lost
    await asyncio.sleep(0)

    assert [ZeroDivisionError] == [type(exc) for exc in told]
