"""More sessions of one client, and what it asks for over HTTP."""

from __future__ import annotations

import asyncio
import gc
import http.server
import json
import threading
from contextlib import contextmanager
from typing import ClassVar

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.integration.client.proxies import proxying
from tests.integration.client.scripted import free_port, raw_server
from tests.support.certificates import make_certificate, serving
from tests.support.in_thread import in_thread

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from openenv.errors import (
    CapacityReached,
    ConnectFailed,
    LimitExceeded,
    RemoteProtocolError,
)


@pytest.fixture
def server():
    with scripted_in_thread() as server:
        yield server


class Positional(GenericEnvClient):
    """Take nothing but the URL."""

    def __init__(self, base_url):
        super().__init__(base_url, message_timeout_s=7)


async def session_of(client):
    return (await client.reset()).observation["session"]


async def active(server, number):
    async with asyncio.timeout(5):
        while server.active != number:  # noqa: ASYNC110 - in another thread
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("kind", [GenericEnvClient, MCPToolClient, Positional])
async def test_a_new_session_is_a_client_of_the_same_settings(server, kind):
    async with kind(server.url) as client:
        client._message_timeout = 9
        other = await client.new_session()

        assert kind is type(other)
        assert client._settings == other._settings
        assert client._settings is not other._settings
        await asyncio.gather(client._reset_async(), other._reset_async())
        await active(server, 2)
    await active(server, 0)


async def test_sessions_share_nothing_and_end_apart(server):
    client = GenericEnvClient(server.url)
    other = await client.new_session()
    third = await other.new_session()
    assert 3 == len({await session_of(each) for each in (client, other, third)})
    await other.close()  # and with it its own
    await active(server, 1)
    assert () == client._child_clients
    assert 1 == (await client.step({})).observation["steps"]
    await client.close()
    await active(server, 0)


async def test_the_parent_need_not_be_connected_and_may_be_closed_first(server):
    client = GenericEnvClient(server.url)
    children = [await client.new_session() for _ in range(3)]
    await active(server, 3)
    await client.close()
    await active(server, 0)
    await children[0].reset()  # each can be used again, on its own
    await children[0].close()


async def test_a_refusal_leaves_the_parent_as_it_was():
    with scripted_in_thread(capacity=1) as server:
        async with GenericEnvClient(server.url) as client:
            await client.reset()
            with pytest.raises(CapacityReached):
                await (await client.new_session()).reset()
            await client.step({})
    gc.collect()


def test_new_sessions_of_callers_that_block(server):
    with GenericEnvClient(server.url) as client:
        assert {2, 3} == {
            each.reset().observation["session"]
            for each in (client.new_session(), client.sync().new_session())
        }


class Provider:
    """Say where a server is, and count."""

    def __init__(self, url):
        self.url, self.calls = url, []

    def start_container(self):
        self.calls.append("start")
        return self.url

    def wait_for_ready(self, url):
        assert url == self.url

    def stop_container(self):
        self.calls.append("stop")


async def test_a_provider_is_started_once_and_stays_the_parents(server):
    provider = Provider(server.url)
    client = GenericEnvClient(provider=provider)
    first, second = await asyncio.gather(client.new_session(), client.new_session())
    await client.reset()
    assert ["start"] == provider.calls
    assert None is first._provider
    await first.close()
    assert ["start"] == provider.calls
    await second.reset()
    await client.close()
    assert ["start", "stop"] == provider.calls


class Answers(http.server.BaseHTTPRequestHandler):
    """Answer GET with what the test says, and keep what was asked."""

    status: ClassVar = 200
    body: ClassVar = b""
    seen: ClassVar[list] = []

    def do_GET(self):
        self.seen.append((self.path, dict(self.headers)))
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


@contextmanager
def answering(body, status=200, tls=None):
    handler = type("Handler", (Answers,), {"body": body, "status": status, "seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, handler.seen
        finally:
            server.shutdown()
            thread.join()


SCHEMAS = {"action": {"type": "object"}, "observation": {}, "state": {}}


async def test_the_schemas_are_asked_for_below_the_base_url():
    with answering(json.dumps(SCHEMAS).encode()) as (port, seen):
        url = f"http://me:secret@127.0.0.1:{port}/prefix/ws?token=t"
        client = GenericEnvClient(url, headers={"X-A": "b"})

        assert SCHEMAS == await client.schema()
    path, headers = seen[0]
    assert ("/prefix/schema?token=t", "b") == (path, headers["X-A"])
    assert "Basic bWU6c2VjcmV0" == headers["Authorization"]


def test_callers_that_block_get_them_too():
    with answering(json.dumps(SCHEMAS).encode()) as (port, _):
        client = GenericEnvClient(f"127.0.0.1:{port}")

        assert SCHEMAS == client.schema() == client.sync().schema()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_they_come_through_proxy_and_tls(tmp_path, monkeypatch, scheme):
    monkeypatch.setenv("NO_PROXY", "*")  # what the caller says comes first
    certificate = make_certificate(tmp_path, "env.example", "localhost")
    tls = serving(certificate)
    around = tls if scheme == "https" else None
    with (
        answering(json.dumps(SCHEMAS).encode(), tls=tls) as (port, _),
        in_thread(proxying(password="p w", tls=around), "proxy") as proxy,
    ):
        client = GenericEnvClient(
            f"https://env.example:{port}",
            proxy=f"{scheme}://me:p%20w@localhost:{proxy.port}",
            verify=certificate,
        )

        assert SCHEMAS == await client.schema()
    assert [f"CONNECT env.example:{port}"] == proxy.asked


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_an_http_error_is_named(status):
    with (
        answering(b"no", status) as (port, _),
        pytest.raises(ConnectFailed, match=f"HTTP {status}") as caught,
    ):
        await GenericEnvClient(f"127.0.0.1:{port}").schema()
    assert status == caught.value.status


async def test_what_is_no_answer_is_named():
    with (
        answering(b"<html>") as (port, _),
        pytest.raises(RemoteProtocolError, match="answered no JSON"),
    ):
        await GenericEnvClient(f"127.0.0.1:{port}").schema()
    with answering(b"1" * 200_000) as (port, _):
        client = GenericEnvClient(f"127.0.0.1:{port}", max_message_size_mb=0.1)
        with pytest.raises(LimitExceeded, match="max_message_size_mb"):
            await client.schema()
    with pytest.raises(ConnectFailed, match=r"refused|connect"):
        await GenericEnvClient(f"127.0.0.1:{free_port()}").schema()


async def test_a_redirection_is_not_followed_with_the_users_headers():
    with answering(b"[1]") as (other, seen), answering(b"", 302) as (port, _):
        client = GenericEnvClient(f"127.0.0.1:{port}", headers={"Authorization": "x"})
        with pytest.raises(ConnectFailed, match="HTTP 302"):
            await client.schema()
    assert [] == seen
    assert other != port


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_a_server_that_drips_is_given_up_in_time(head):
    async def drips(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with raw_server(drips) as port:
        client = GenericEnvClient(f"127.0.0.1:{port}", connect_timeout_s=0.2)
        async with asyncio.timeout(2):
            with pytest.raises(ConnectFailed, match="within the connect timeout"):
                await client.schema()


async def test_the_answer_may_come_in_chunks():
    async def chunked(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b'7\r\n{"a": 1\r\n1\r\n}\r\n0\r\n\r\n')

    async with raw_server(chunked) as port:
        assert {"a": 1} == await GenericEnvClient(f"127.0.0.1:{port}").schema()


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1]"],
)
async def test_half_an_answer_is_none(answer):
    async def half(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with raw_server(half) as port:
        with pytest.raises(ConnectFailed, match="no HTTP, or only a part"):
            await GenericEnvClient(f"127.0.0.1:{port}").schema()
