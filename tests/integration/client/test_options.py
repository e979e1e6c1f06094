"""TLS, patient connects, and a connection that does not need the caller's loop."""

from __future__ import annotations

import asyncio
import pickle
import ssl
import threading
import time

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.integration.client.scripted import (
    free_port,
    raw_server,
    scripted,
    upgrade_answer,
)
from tests.support.certificates import make_certificate, serving

from openenv.core._client.io_thread import THREAD_NAME
from openenv.core._client.tls import tls_context
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed, RequestTimeout


@pytest.fixture
def certificate(tmp_path):
    return make_certificate(tmp_path, "localhost")


async def echo(client):
    async with client:
        await client.reset()
        return (await client.step({"it": 1})).observation["echo"]["it"]


@pytest.mark.parametrize("form", ["path", "text", "folder", "context", "nobody"])
async def test_what_verify_may_be(certificate, form, tmp_path):
    context = ssl.create_default_context(cafile=certificate)
    hashed = tmp_path / "hashed"
    hashed.mkdir()
    openssl = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate)]
    process = await asyncio.create_subprocess_exec(*openssl, stdout=-1)
    name = (await process.communicate())[0].decode().strip()
    (hashed / f"{name}.0").write_bytes(certificate.read_bytes())
    verify = {
        "path": certificate,
        "text": str(certificate),
        "folder": hashed,
        "context": context,
        "nobody": False,
    }[form]
    with scripted_in_thread(tls=serving(certificate)) as server:
        client = GenericEnvClient(f"https://localhost:{server.port}", verify=verify)
        if form != "context":  # which nothing can pickle
            client = pickle.loads(pickle.dumps(client))

        assert 1 == await echo(client)


async def test_a_certificate_is_checked_against_the_name(certificate):
    with scripted_in_thread(tls=serving(certificate)) as server:
        url = f"https://127.0.0.1:{server.port}"
        with pytest.raises(ConnectFailed, match="certificate"):
            await echo(GenericEnvClient(url, verify=certificate))


@pytest.mark.parametrize("as_pair", [False, True])
async def test_a_client_shows_its_own_certificate(certificate, as_pair):
    tls = serving(certificate)
    tls.load_verify_locations(certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    with scripted_in_thread(tls=tls) as server:
        url = f"https://localhost:{server.port}"
        cert = (certificate, certificate) if as_pair else certificate

        assert 1 == await echo(GenericEnvClient(url, verify=certificate, cert=cert))
        with pytest.raises(ConnectFailed):
            await echo(GenericEnvClient(url, verify=certificate))


def test_options_that_cannot_be_are_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        GenericEnvClient("https://h", verify=tmp_path / "none.pem")
    with pytest.raises(FileNotFoundError):
        GenericEnvClient("https://h", cert=tmp_path / "none.pem")
    (tmp_path / "empty.pem").touch()
    with pytest.raises(ssl.SSLError):
        GenericEnvClient("https://h", verify=tmp_path / "empty.pem")
    context = ssl.create_default_context()
    with pytest.raises(ValueError, match="SSLContext"):
        GenericEnvClient("https://h", verify=context, cert=tmp_path / "c.pem")
    with pytest.raises(TypeError):
        GenericEnvClient("https://h", verify=7)
    with pytest.raises(TypeError):
        GenericEnvClient("https://h", cert=7)
    with pytest.raises(ValueError, match="verify must not be an empty path"):
        GenericEnvClient("https://h", verify="")
    for parts in ((), ("c", "k", "p", "x")):
        with pytest.raises(ValueError, match=r"cert must be a path or \(certificate,"):
            GenericEnvClient("https://h", cert=parts)


async def test_a_file_that_was_replaced_is_read_again(certificate, tmp_path):
    other, authorities = tmp_path / "other", tmp_path / "rotating.pem"
    other.mkdir()
    authorities.write_bytes(make_certificate(other, "other").read_bytes())
    with scripted_in_thread(tls=serving(certificate)) as server:
        url = f"https://localhost:{server.port}"
        old = GenericEnvClient(url, verify=authorities)
        with pytest.raises(ConnectFailed):
            await echo(old)
        authorities.write_bytes(certificate.read_bytes())

        assert 1 == await echo(GenericEnvClient(url, verify=authorities))
        assert 1 == await echo(old)
        authorities.unlink()  # as a temporary one may be

        assert 1 == await echo(old)


def test_a_folder_is_looked_through_again(tmp_path):
    assert tls_context(str(tmp_path), ()) is not tls_context(str(tmp_path), ())


def test_the_systems_authorities_may_be_replaced(certificate, monkeypatch):
    before = tls_context(True, ())
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    after = tls_context(True, ())

    assert before is not after
    assert 1 == len(after.get_ca_certs())


def test_the_context_of_the_same_files_is_made_once(certificate):
    believed = str(certificate)

    assert tls_context(believed, ()) is tls_context(believed, ())
    with pytest.raises(ValueError, match="io must be"):
        GenericEnvClient("https://h", io="threads")
    with pytest.raises(ValueError, match="retry_s"):
        GenericEnvClient("https://h").connect(retry_s=-1)


async def test_a_server_that_comes_late_is_waited_for():
    port = free_port()

    async def later():
        await asyncio.sleep(0.3)
        async with scripted(port) as server:
            await server.until(lambda: server.said_goodbye)

    serving_later = asyncio.create_task(later())
    client = GenericEnvClient(f"http://localhost:{port}")
    assert client is await client.connect(retry_s=10)
    await client.reset()
    await client.close()
    await serving_later


@pytest.mark.parametrize("status", [429, 502, 503])
async def test_a_busy_balancer_is_asked_again(status):
    asked = 0

    async def busy_at_first(reader, writer):
        nonlocal asked
        asked += 1
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if asked < 3:
            writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode())
            return
        writer.write(upgrade_answer(head))
        await reader.read()

    async with raw_server(busy_at_first) as port:
        client = GenericEnvClient(f"http://127.0.0.1:{port}")
        await client.connect(retry_s=10)
        await client.close()
        assert 3 == asked


async def test_a_forwarder_that_drops_at_first_is_asked_again():
    asked = 0

    async def drops_at_first(reader, writer):
        nonlocal asked
        asked += 1
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if asked < 3:
            return
        writer.write(upgrade_answer(head))
        await reader.read()

    async with raw_server(drops_at_first) as port:
        client = GenericEnvClient(f"http://127.0.0.1:{port}")
        await client.connect(retry_s=10)
        await client.close()
        assert 3 == asked


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_what_waiting_does_not_mend_is_not_waited_for(status):
    async def refuses(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode())

    async with raw_server(refuses) as port:
        client = GenericEnvClient(f"http://127.0.0.1:{port}")
        async with asyncio.timeout(5):
            with pytest.raises(ConnectFailed) as caught:
                await client.connect(retry_s=60)
    assert status == caught.value.status


def test_patience_ends_and_works_without_a_loop():
    port = free_port()
    started = time.monotonic()
    with pytest.raises(ConnectFailed):
        GenericEnvClient(f"http://localhost:{port}").connect(retry_s=0.3)
    with pytest.raises(ConnectFailed):
        GenericEnvClient(f"http://localhost:{port}").sync().connect(retry_s=0.3)

    assert 0.3 < time.monotonic() - started < 10


async def test_without_patience_one_refusal_is_enough():
    client = GenericEnvClient(f"http://localhost:{free_port()}")
    async with asyncio.timeout(5):
        with pytest.raises(ConnectFailed):
            await client.connect()


async def test_a_connection_on_the_thread_is_served_while_the_loop_is_blocked():
    with scripted_in_thread() as server:
        url = server.url
        options = {"websocket_ping_interval_s": 0.05, "websocket_ping_timeout_s": 0.1}
        async with GenericEnvClient(url, io="thread", **options) as client:
            await client.reset()
            assert THREAD_NAME in {thread.name for thread in threading.enumerate()}
            for n in range(3):
                time.sleep(0.3)  # noqa: ASYNC251 - a loop that somebody blocks
                answer = await client.step({"it": n})
                assert (n, n + 1) == (
                    answer.observation["echo"]["it"],
                    answer.observation["steps"],
                )
            with pytest.raises(RequestTimeout):
                await client.step({"sleep": 5}, timeout_s=0.05)


async def test_calls_on_the_thread_are_cancelled_and_kept_in_order():
    with scripted_in_thread() as server:
        async with GenericEnvClient(server.url, io="thread") as client:
            await client.reset()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.step({"it": "old", "sleep": 0.2})
            steps = await asyncio.gather(*(client.step({"it": n}) for n in range(9)))

    assert list(range(9)) == [step.observation["echo"]["it"] for step in steps]


def test_many_loops_may_share_one_client_of_the_thread():
    with scripted_in_thread() as server:
        client = GenericEnvClient(server.url, io="thread")

        async def use():
            await client.reset()
            return (await client.step({"it": 1})).observation["session"]

        sessions = [asyncio.run(use()) for _ in range(3)]
        client.close()

    assert [1, 1, 1] == sessions
