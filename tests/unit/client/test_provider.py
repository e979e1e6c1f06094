from __future__ import annotations

import asyncio
import threading

import pytest
from tests.integration.client.in_thread import scripted_in_thread

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed, ConnectionClosed


class Container:
    """A container provider that notes what is done to it."""

    def __init__(self, url="http://127.0.0.1:9"):
        self.url, self.log, self.failing = url, [], set()
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def _do(self, name):
        self.log.append(name)
        self.started.set()
        self.gate.wait(5)
        if name in self.failing:
            raise OSError(name)

    def start_container(self):
        self._do("start_container")
        return self.url + "/"

    def wait_for_ready(self, url):
        assert url == self.url + "/"
        self._do("wait_for_ready")

    def stop_container(self):
        self._do("stop_container")


class Runtime(Container):
    start_container = stop_container = property()  # type: ignore[assignment]

    def __getattribute__(self, name):
        if name in {"start_container", "stop_container"}:
            raise AttributeError(name)
        return super().__getattribute__(name)

    def start(self):
        self._do("start")
        return self.url

    def wait_for_ready(self):
        self._do("wait_for_ready")

    def stop(self):
        self._do("stop")


class NeedsImage(Container):
    def start_container(self, image, port=1, **kwargs):
        raise AssertionError("never called", image, port, kwargs)


@pytest.fixture
def server():
    with scripted_in_thread() as running:
        yield running


START = ["start_container", "wait_for_ready"]


async def test_a_provider_without_an_url_is_started_and_stopped(server):
    provider = Container(server.url)
    client = GenericEnvClient(provider=provider)
    assert client.base_url is None
    async with client:
        assert START == provider.log
        assert server.url == client.base_url
        assert provider is client._provider
        await client.reset()

    assert [*START, "stop_container"] == provider.log
    assert client.base_url is None


def test_the_first_call_starts_it_too_and_close_stops_it_once(server):
    provider = Container(server.url)
    client = GenericEnvClient(provider=provider)
    client.reset()
    client.close()
    client.close()
    client.reset()
    client.sync().close()

    assert [*START, "stop_container"] * 2 == provider.log


def test_a_runtime_provider_is_known_by_its_methods(server):
    provider = Runtime(server.url)
    with GenericEnvClient(provider=provider) as client:
        client.reset()

    assert ["start", "wait_for_ready", "stop"] == provider.log


def test_a_provider_with_an_url_is_only_stopped_and_only_once(server):
    provider = Container(server.url)
    client = GenericEnvClient(server.url, provider=provider)
    client.reset()
    client.close()
    client.reset()
    client.close()

    assert ["stop_container"] == provider.log


def test_what_needs_arguments_or_is_no_provider_is_refused_by_name():
    needs_image = NeedsImage()
    with pytest.raises(
        ValueError, match=r"NeedsImage.start_container\(\) needs image;"
    ):
        GenericEnvClient(provider=needs_image).connect()
    with pytest.raises(TypeError, match="object is no provider"):
        GenericEnvClient(provider=object()).connect()
    with pytest.raises(TypeError, match=r"no start_container\(\)"):
        GenericEnvClient.from_docker_image("echo", object()).sync()  # type: ignore[arg-type]

    assert [] == needs_image.log  # what was not started is not stopped


@pytest.mark.parametrize("step", START)
def test_a_start_that_fails_is_undone(step):
    provider = Container()
    provider.failing = {step}
    with pytest.raises(OSError, match=step):
        GenericEnvClient(provider=provider).connect()

    assert "stop_container" == provider.log[-1]
    assert 1 == provider.log.count("stop_container")


def test_a_connection_that_fails_stops_it():
    provider = Container()
    client = GenericEnvClient(provider=provider)
    with pytest.raises(ConnectFailed):
        client.reset()

    assert [*START, "stop_container"] == provider.log
    assert client.base_url is None


async def test_a_start_that_is_cancelled_is_undone_when_it_is_known():
    provider = Container()
    provider.gate.clear()
    client = GenericEnvClient(provider=provider)
    connecting = asyncio.ensure_future(client.connect())
    await asyncio.to_thread(provider.started.wait, 5)
    connecting.cancel()
    provider.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await connecting

    assert "stop_container" == provider.log[-1]


@pytest.mark.parametrize("how", ["close", "disconnect"])
@pytest.mark.parametrize("given", [Container, Runtime])
def test_a_start_that_close_meets_is_undone_once(server, given, how):
    provider = given(server.url)
    provider.gate.clear()
    client = GenericEnvClient(provider=provider).sync()
    failures = []

    def connect():
        with pytest.raises(ConnectionClosed, match="the client was closed") as caught:
            client.connect()
        failures.append(caught.value)

    connecting = threading.Thread(target=connect)
    connecting.start()
    provider.started.wait(5)
    closing = threading.Thread(target=getattr(client, how))
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()  # the end of the start is waited for
    provider.gate.set()
    closing.join(5)
    connecting.join(5)
    client.close()

    assert failures
    assert provider.log[-1].startswith("stop")
    assert 1 == sum(name.startswith("stop") for name in provider.log)
    assert client.base_url is None


async def test_children_that_wait_for_the_start_that_close_meets_are_told(server):
    provider = Container(server.url)
    provider.gate.clear()
    client = GenericEnvClient(provider=provider)
    making = [asyncio.ensure_future(client.new_session()) for _ in range(2)]
    await asyncio.to_thread(provider.started.wait, 5)
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0.01)
    provider.gate.set()
    await closing
    outcomes = await asyncio.gather(*making, return_exceptions=True)

    assert [ConnectionClosed] * 2 == [type(outcome) for outcome in outcomes]
    assert 1 == provider.log.count("stop_container")


async def test_two_at_once_stop_it_once(server):
    provider = Container(server.url)
    client = GenericEnvClient(provider=provider)
    await client.connect()
    provider.gate.clear()
    closing = asyncio.gather(client.close(), asyncio.to_thread(client.sync().close))
    await asyncio.sleep(0.1)
    provider.gate.set()
    await closing

    assert 1 == provider.log.count("stop_container")


def test_a_stop_that_failed_is_tried_again_before_the_next_start(server):
    provider = Container(server.url)
    provider.failing = {"stop_container"}
    client = GenericEnvClient(provider=provider)
    client.reset()
    with pytest.raises(OSError, match="stop_container"):
        client.close()
    provider.failing = set()
    client.reset()
    client.close()

    stop = "stop_container"
    assert [*START, stop, stop, *START, stop] == provider.log


def test_a_stop_that_failed_forbids_to_connect_to_an_url_of_the_callers(server):
    provider = Container(server.url)
    provider.failing = {"stop_container"}
    client = GenericEnvClient(server.url, provider=provider)
    client.reset()
    with pytest.raises(OSError, match="stop_container"):
        client.close()
    with pytest.raises(RuntimeError, match="could not be stopped"):
        client.reset()
