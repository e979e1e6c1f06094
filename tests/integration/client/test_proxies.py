"""Ways through an HTTP proxy, those that lead past it, and its refusals."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.integration.client.proxies import proxying
from tests.integration.client.scripted import free_port, raw_server
from tests.support.certificates import make_certificate, serving
from tests.support.in_thread import in_thread

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed

HOST = "env.example"  # which no resolver knows (RFC 2606)
VARIABLES = ("WS_PROXY", "WSS_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in (*VARIABLES, "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server():
    with scripted_in_thread() as server:
        yield server


@pytest.fixture
def proxy():
    with in_thread(proxying(), "proxy") as proxy:
        yield proxy


def environment():
    return dict(os.environ)  # noqa: TID251 - to see that nobody changed it


async def play(url, **options):
    async with GenericEnvClient(url, **options) as client:
        await client.reset()
        big = await client.step({"it": "x" * 3_000_000, "size": 3_000_000})
        steps = [await client.step({"it": n}) for n in range(3)]
    assert 3_000_000 == len(big.observation["blob"])
    return [step.observation["echo"]["it"] for step in steps]


@pytest.mark.parametrize("name", ["WS_PROXY", "HTTPS_PROXY", "http_proxy", "all_proxy"])
async def test_a_plain_server_is_reached_through_the_environments_proxy(
    server, proxy, monkeypatch, name
):
    monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")

    assert [0, 1, 2] == await play(f"http://{HOST}:{server.port}")
    assert [f"CONNECT {HOST}:{server.port}"] == proxy.asked


@pytest.mark.parametrize("name", ["WSS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_a_tls_server_is_reached_and_checked_through_it(
    tmp_path, proxy, monkeypatch, name
):
    certificate = make_certificate(tmp_path, HOST)
    monkeypatch.setenv(name, f"127.0.0.1:{proxy.port}")
    with scripted_in_thread(tls=serving(certificate)) as server:
        url = f"https://{HOST}:{server.port}"
        with pytest.raises(ConnectFailed, match="certificate"):
            await play(url)

        assert [0, 1, 2] == await play(url, verify=certificate)


@pytest.mark.parametrize("secure", [False, True])
async def test_a_proxy_may_speak_tls_itself(tmp_path, secure):
    certificate = make_certificate(tmp_path, HOST, "localhost")
    tls = serving(certificate)
    with (
        scripted_in_thread(tls=tls if secure else None) as server,
        in_thread(proxying(tls=tls), "proxy") as proxy,
    ):
        url = f"{'https' if secure else 'http'}://{HOST}:{server.port}"
        options = {"proxy": f"https://localhost:{proxy.port}", "verify": certificate}

        assert [0, 1, 2] == await play(url, **options)


async def test_what_the_caller_says_comes_before_the_environment(
    server, proxy, monkeypatch
):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    url = f"http://localhost:{server.port}"

    await play(url, proxy=f"http://127.0.0.1:{proxy.port}")
    assert 1 == len(proxy.asked)
    with pytest.raises(ConnectFailed):  # past every proxy, to a host nobody knows
        await play(f"http://{HOST}:{server.port}", proxy=None)
    assert 1 == len(proxy.asked)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "[::1]"])
async def test_this_machine_is_reached_past_the_environments_proxy(
    server, proxy, monkeypatch, host
):
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
    before = environment()
    client = GenericEnvClient(f"http://{host}:{server.port}")
    try:
        await asyncio.gather(client.connect(), client.connect())
    except ConnectFailed:  # it listens on 127.0.0.1 alone
        assert host != "localhost"
    await client.close()

    assert [] == proxy.asked
    assert before == environment()


@pytest.mark.parametrize("host", ["localhost.evil.example", "127.0.0.1.example"])
async def test_a_name_that_only_looks_local_is_not(server, proxy, monkeypatch, host):
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")

    await play(f"http://{host}:{server.port}")

    assert [f"CONNECT {host}:{server.port}"] == proxy.asked


@pytest.mark.parametrize("exception", [HOST, ".example", "*", f"{HOST}:{{port}}"])
async def test_no_proxy_leads_past_it(server, proxy, monkeypatch, exception):
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", exception.format(port=server.port))

    with pytest.raises(ConnectFailed):
        await play(f"http://{HOST}:{server.port}")
    assert [] == proxy.asked


async def test_a_password_is_sent_and_never_shown(server):
    with in_thread(proxying(password="p w"), "proxy") as proxy:
        place = f"127.0.0.1:{proxy.port}"
        url = f"http://{HOST}:{server.port}"

        assert [0, 1, 2] == await play(url, proxy=f"http://me:p%20w@{place}")
        with pytest.raises(ConnectFailed) as caught:
            await play(url, proxy=f"http://me:wrong@{place}")

    assert 407 == caught.value.status
    assert f"the proxy http://{place} answered 407" in str(caught.value)
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "answered 502 Bad Gateway"),
        (b"HTTP/1.1 200 OK\r\n\r\n\x81\x00", "sent more than its answer"),
        (b"SSH-2.0-x\r\n\r\n", "did not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\n", "closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "did not answer in HTTP"),
    ],
)
async def test_a_proxy_that_makes_no_tunnel_is_a_failed_connect(answer, said):
    with in_thread(proxying(answer=answer), "proxy") as proxy:
        client = GenericEnvClient(HOST, proxy=f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(ConnectFailed, match=said):
            await client.connect()


async def test_a_proxy_that_says_nothing_is_given_up_in_time():
    async def never(reader, writer):
        del writer
        await reader.read(65_536)
        await asyncio.sleep(30)

    async with raw_server(never) as port:
        proxy = f"http://127.0.0.1:{port}"
        with pytest.raises(ConnectFailed, match="connect timeout"):
            await GenericEnvClient(HOST, connect_timeout_s=0.1, proxy=proxy).connect()


async def test_a_proxy_that_is_not_there_is_a_failed_connect():
    proxy = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectFailed):
        await GenericEnvClient(HOST, proxy=proxy).connect()


@pytest.mark.parametrize("proxy", ["socks5://h:1", "ftp://h", "http://", "http://h:x"])
def test_what_is_no_proxy_is_refused_at_once(proxy):
    with pytest.raises(ValueError, match=r"prox"):
        GenericEnvClient(HOST, proxy=proxy)
    with pytest.raises(TypeError, match="proxy must be a URL"):
        GenericEnvClient(HOST, proxy=7)


async def test_a_proxy_of_the_environment_that_is_not_spoken_is_named(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")

    with pytest.raises(ConnectFailed, match="kind socks5:// are not supported"):
        await GenericEnvClient(HOST).connect()
