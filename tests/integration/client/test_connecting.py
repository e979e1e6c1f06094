"""Opening a connection: what is sent, what can go wrong, what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pickle
import socket
import time
import warnings
from pathlib import Path
from unittest.mock import Mock

import pytest
import uvloop
from tests.integration.client.scripted import (
    free_port,
    raw_server,
    scripted,
    until,
    upgrade_answer,
)

from openenv.core._client import dial
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed, ConnectionClosed, LimitExceeded


def open_sockets() -> int:
    count = 0
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(fd.readlink()).startswith("socket:")
    return count


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


def hold(held):
    async def never_answer(reader, writer):
        held.append(writer)
        while await reader.read(65536):
            pass

    return never_answer


async def test_the_handshake_carries_the_users_headers_and_our_features():
    headers = {"X-Token": "secret", "Authorization": "Bearer t"}
    async with scripted() as server:
        client = GenericEnvClient(server.url + "/pre?x=1", headers=headers)
        await client.connect()
        await client.close()

    sent = {name.lower(): value for name, value in server.request_headers[0].items()}
    assert "/pre/ws?x=1" == server.paths[0]
    assert f"127.0.0.1:{server.port}" == sent["host"]
    assert ("secret", "Bearer t") == (sent["x-token"], sent["authorization"])
    assert "nonfinite, ignored, exception" == sent["openenv-features"]


async def test_credentials_in_the_url_are_sent_as_basic_authorization():
    async with scripted() as server:
        url = server.url.replace("//", "//user:pass@")
        async with GenericEnvClient(url) as client:
            await client.reset()

    assert "Basic dXNlcjpwYXNz" == server.request_headers[0]["Authorization"]


async def test_connect_gives_the_client_and_opens_once():
    async with scripted() as server:
        client = GenericEnvClient(server.url)
        assert client is await client.connect()
        await asyncio.gather(client.connect(), client.connect(), client.reset())
        await client.close()

    assert 1 == server.sessions


async def test_a_refused_connection_names_the_url():
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectFailed, match=r"^Failed to connect to ws://127.*/ws: "):
        await GenericEnvClient(url).connect()


async def test_a_failed_connection_tells_no_secrets():
    client = GenericEnvClient(f"http://u:secret@127.0.0.1:{free_port()}/p?token=secret")
    with pytest.raises(
        ConnectFailed, match=r"to ws://127\.0\.0\.1:\d+/p/ws\?…: "
    ) as failed:
        await client.connect()

    assert "secret" not in repr(failed.value) + str(failed.value.url)


async def test_an_unknown_host_is_a_connect_failure():
    with pytest.raises(ConnectionError, match=r"Failed to connect to ws://no\.invalid"):
        await GenericEnvClient("no.invalid").connect()


async def test_a_refused_upgrade_tells_the_status():
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with raw_server(refuse) as port:
        with pytest.raises(ConnectFailed, match="403") as refused:
            await GenericEnvClient(f"127.0.0.1:{port}").connect()

    assert 403 == refused.value.status
    assert f"ws://127.0.0.1:{port}/ws" == refused.value.url


@pytest.mark.parametrize(
    ("status", "hinted"), [(403, True), (404, True), (401, False), (500, False)]
)
async def test_an_upgrade_refused_for_its_path_perhaps_hints_at_the_path(
    status, hinted
):
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)
        await writer.drain()

    async with raw_server(refuse) as port:
        with pytest.raises(ConnectFailed, match=str(status)) as refused:
            await GenericEnvClient(f"127.0.0.1:{port}").connect()

    assert hinted == ("is /ws below the base URL?" in refused.value.reason)
    assert (status, refused.value.reason) == (
        refused.value.status,
        pickle.loads(pickle.dumps(refused.value)).reason,
    )


async def test_a_server_that_never_answers_the_upgrade_is_given_up_in_time():
    held = []
    async with raw_server(hold(held)) as port:
        client = GenericEnvClient(f"127.0.0.1:{port}", connect_timeout_s=0.1)
        with pytest.raises(ConnectionError, match="Failed to connect to"):
            await client.reset()
        await until(held[0].is_closing)


async def test_the_calls_own_deadline_bounds_the_connecting_too():
    held = []
    async with raw_server(hold(held)) as port:
        client = GenericEnvClient(f"127.0.0.1:{port}")
        async with asyncio.timeout(2):
            with pytest.raises(ConnectFailed):
                await client.step({"it": 1}, timeout_s=0.1)


def test_connects_that_run_out_of_time_at_any_point_leave_no_noise():
    told = []

    async def connect(port):
        for tenth_ms in range(60):
            client = GenericEnvClient(f"127.0.0.1:{port}")
            with contextlib.suppress(TimeoutError, ConnectionError):
                await client.step({"it": 1}, timeout_s=tenth_ms / 10_000)
            await client.close()

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        async with raw_server(hold([])) as port:
            await connect(port)
        gc.collect()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())

    assert [] == told


async def test_a_transport_that_never_tells_its_loss_leaves_nothing(monkeypatch):
    """As uvloop's, when a connect is cancelled right after it came about."""
    made = []

    async def open_transport(_loop, _address, _settings, protocol_factory):
        made.append(protocol_factory())
        made[0].connection_made(Mock(spec=asyncio.Transport))
        await asyncio.sleep(60)

    monkeypatch.setattr(dial, "open_transport", open_transport)
    with pytest.raises(ConnectFailed, match="connect timeout"):
        await GenericEnvClient("h", connect_timeout_s=0.01).connect()

    assert made[0].is_lost
    assert made[0].opened.done()


async def test_a_transport_that_comes_after_the_end_is_cut_off(monkeypatch):
    made = []

    async def open_transport(_loop, _address, _settings, protocol_factory):
        made.append(protocol_factory())
        await asyncio.sleep(60)

    monkeypatch.setattr(dial, "open_transport", open_transport)
    with pytest.raises(ConnectFailed, match="connect timeout"):
        await GenericEnvClient("h", connect_timeout_s=0.01).connect()
    transport = Mock(spec=asyncio.Transport)
    made[0].connection_made(transport)

    transport.abort.assert_called_once_with()
    transport.write.assert_not_called()


async def test_a_cancelled_connect_leaves_nothing():
    held = []
    async with raw_server(hold(held)) as port:
        before = open_sockets()
        client = GenericEnvClient(f"127.0.0.1:{port}")
        connecting = asyncio.ensure_future(client.connect())
        await until(lambda: held)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await until(held[0].is_closing)
        await until(lambda: open_sockets() <= before)

        assert not client._home.link.is_in_use
        assert len(asyncio.all_tasks()) == 1


async def test_a_client_forgotten_unclosed_warns_and_its_socket_is_closed():
    async with scripted() as server:
        client = GenericEnvClient(server.url)
        await client.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del client
            gc.collect()
        await server.until(lambda: not server.connections)

    messages = [str(warning.message) for warning in caught]
    assert [ResourceWarning] == [warning.category for warning in caught]
    assert messages[0].startswith("unclosed client GenericEnvClient(base_url=")


async def test_a_closed_client_is_forgotten_in_silence():
    async with scripted() as server:
        client = GenericEnvClient(server.url)
        await client.reset()
        await client.close()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del client
            gc.collect()

    assert [] == [str(warning.message) for warning in caught]


async def test_what_the_server_will_not_take_is_refused_before_sending():
    limits = {"OpenEnv-Max-Message-Bytes": "1000"}
    async with (
        scripted(response_headers=limits) as server,
        GenericEnvClient(server.url) as client,
    ):
        await client.reset()
        with pytest.raises(LimitExceeded, match="1000") as refused:
            await client.step({"it": "x" * 2000})
        step = await client.step({"it": "short"})

    assert 1000 == refused.value.limit
    assert 1 == step.observation["steps"]


async def test_an_answer_above_the_limit_ends_the_connection_with_1009():
    async with scripted() as server:
        client = GenericEnvClient(server.url, max_message_size_mb=0.01)
        await client.reset()
        with pytest.raises((ConnectionClosed, LimitExceeded)) as closed:
            await client.step({"size": 20_000})
        again = await client.reset()
        await client.close()

    assert "1009" in str(closed.value) or isinstance(closed.value, LimitExceeded)
    assert 2 == again.observation["session"]


async def test_a_big_message_goes_both_ways():
    size = 8 * 1024 * 1024
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        step = await client.step({"it": "y" * size, "size": size})

    assert (size, size) == (
        len(step.observation["echo"]["it"]),
        len(step.observation["blob"]),
    )


async def test_ignored_reset_keys_are_named_once():
    async with (
        scripted(ignored=["colour", "size"]) as server,
        GenericEnvClient(server.url) as client,
    ):
        with pytest.warns(UserWarning, match="takes no colour, size"):
            await client.reset(colour=1, size=0)
        await client.reset(colour=2)


async def test_an_ipv6_server_is_reached():
    if not has_ipv6_loopback():
        pytest.skip("this machine has no IPv6 loopback")

    async def hang_up(reader, writer):
        del writer
        await reader.read(65536)

    async with raw_server(hang_up, "::1") as port:
        with pytest.raises(ConnectFailed) as failed:
            await GenericEnvClient(f"http://[::1]:{port}").connect()

    assert f"ws://[::1]:{port}/ws" == failed.value.url


async def test_without_a_pong_timeout_a_silent_path_is_left_alone():
    # A tunnel that drops pings and pongs must not end an idle session.
    seen = []

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(upgrade_answer(head))
        while data := await reader.read(65536):
            seen.append(data)

    async with raw_server(serve) as port:
        client = GenericEnvClient(
            f"127.0.0.1:{port}",
            websocket_ping_interval_s=0.01,
            websocket_ping_timeout_s=None,
        )
        await client.connect()
        await until(lambda: len(seen) >= 10)
        assert client._home.link.connection.is_open
        await client.close()


async def test_pings_are_sent_and_a_silent_server_is_given_up():
    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(upgrade_answer(head))
        while await reader.read(65536):
            pass

    async with raw_server(serve) as port:
        client = GenericEnvClient(
            f"127.0.0.1:{port}",
            websocket_ping_interval_s=0.05,
            websocket_ping_timeout_s=0.05,
        )
        async with asyncio.timeout(5):
            with pytest.raises(ConnectionClosed):
                await client.reset()
        await client.close()


async def test_those_who_ask_for_one_host_at_once_share_a_lookup(monkeypatch):
    lookups, resolve = [], socket.getaddrinfo

    def slowly(host, *args, flags=0, **kwargs):
        if host != "env.example" or flags & socket.AI_NUMERICHOST:
            return resolve(host, *args, flags=flags, **kwargs)
        lookups.append(host)
        time.sleep(0.1)
        return resolve("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    async with scripted() as server:
        url = f"http://env.example:{server.port}"
        clients = [GenericEnvClient(url) for _ in range(20)]
        gone = asyncio.ensure_future(clients.pop().connect())
        connecting = asyncio.gather(*(client.connect() for client in clients))
        await asyncio.sleep(0.02)
        gone.cancel()
        await connecting
        assert ["env.example"] == lookups
        await asyncio.gather(*(client.close() for client in clients))


async def test_a_lookup_that_nobody_waits_for_makes_no_noise(monkeypatch):
    def fails(*_, flags=0, **__):
        time.sleep(0 if flags & socket.AI_NUMERICHOST else 0.1)
        raise socket.gaierror(-2, "no such host")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(GenericEnvClient("env.example").connect(), 0.02)
    await asyncio.sleep(0.2)
    gc.collect()
