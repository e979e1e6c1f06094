"""The same client over Rust's, asyncio's and uvloop's transports, plain and TLS."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.integration.client.scripted import free_port, raw_server, upgrade_answer
from tests.support.certificates import make_certificate, serving
from tests.support.processes import wait_until

from openenv.core._native import native
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed, ConnectionClosed, RequestTimeout, SessionLost

uvloop = pytest.importorskip("uvloop", reason="uvloop is not made for Windows")


@pytest.fixture(params=["asyncio", "uvloop"])
def runner(request):
    factory = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    with asyncio.Runner(loop_factory=factory[request.param]) as runner:
        yield runner


# Rust reads sockets on Linux only, plain Python nowhere.
@pytest.fixture(params=[*(["rust's"] if hasattr(native, "Hub") else []), "the loop's"])
def run(request, runner, monkeypatch):
    monkeypatch.setenv("OPENENV_LOOP_TRANSPORTS", str(int(request.param != "rust's")))
    return runner.run


@pytest.fixture
def server():
    with scripted_in_thread() as running:
        yield running


async def play(url, **options):
    async with GenericEnvClient(url, **options) as client:
        await client.reset()
        with pytest.raises(RequestTimeout):
            await client.step({"it": "old", "sleep": 0.2}, timeout_s=0.05)
        steps = await asyncio.gather(*(client.step({"it": n}) for n in range(4)))
        big = await client.step({"it": "x" * 3_000_000, "size": 3_000_000})
        with pytest.raises(ConnectionClosed):
            await client.step({"drop": 1})
        with pytest.raises(SessionLost):
            await client.state()
        again = await client.reset()
    return [step.observation["echo"]["it"] for step in steps], big, again


def test_a_whole_life(run, server):
    order, big, again = run(play(server.url))

    assert [0, 1, 2, 3] == order
    assert 3_000_000 == len(big.observation["blob"])
    assert 2 == again.observation["session"]


def test_a_refused_connection(run):
    async def connect():
        await GenericEnvClient(f"127.0.0.1:{free_port()}").connect()

    with pytest.raises(ConnectFailed):
        run(connect())


def test_a_cancelled_connect(run):
    async def cancel():
        async def never(reader, writer):
            del writer
            await reader.read(65536)
            await asyncio.sleep(30)

        async with raw_server(never) as port:
            client = GenericEnvClient(f"127.0.0.1:{port}")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.connect(), 0.1)
            assert not client._home.link.is_in_use

    run(cancel())


def test_a_client_left_open_when_its_loop_ends_says_goodbye(server):
    async def leave():
        client = GenericEnvClient(server.url)
        await client.reset()
        return client

    for factory in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            client = runner.run(leave())
        assert client._home.link.connection.is_lost

    wait_until(lambda: server.said_goodbye == 2, 5)


def test_a_peer_that_sends_pings_and_never_reads_is_cut_off(run):
    async def flood():
        async def never_read(reader, writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            writer.transport.pause_reading()
            writer.write(upgrade_answer(head))
            ping = bytes([0x89, 125]) + bytes(125)
            while True:
                writer.write(ping * 8000)
                await writer.drain()

        async with raw_server(never_read) as port:
            client = GenericEnvClient(f"127.0.0.1:{port}", max_message_size_mb=0.1)
            with pytest.raises(ConnectionClosed):
                await client.reset()

    run(flood())


@pytest.fixture
def tls(tmp_path):
    certificate = make_certificate(tmp_path, "localhost")
    with scripted_in_thread(tls=serving(certificate)) as server:
        yield server, certificate


def test_https_means_tls_with_a_checked_certificate(run, tls):
    server, certificate = tls
    url = f"https://localhost:{server.port}"

    async def connect():
        await GenericEnvClient(url).connect()

    with pytest.raises(ConnectFailed, match="certificate"):
        run(connect())
    order, big, again = run(play(url, verify=certificate))

    assert [0, 1, 2, 3] == order
    assert 3_000_000 == len(big.observation["blob"])
    assert 2 == again.observation["session"]
