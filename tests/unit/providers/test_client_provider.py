"""When a client starts, interrupts and stops its provider."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest
from tests.support.processes import wait_until

from openenv.core._client import provider as provider_module
from openenv.core._client.provider import Launch
from openenv.core.containers import runtime
from openenv.core.containers.runtime import ProcessProvider, _docker_engine
from openenv.core.containers.runtime._child import Child
from openenv.core.containers.runtime._one_start import AlreadyRunning
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ProviderError


class Stubborn:
    """Take the second interruption only, as a start does at the wrong moment."""

    def __init__(self):
        self.log = []
        self._ended = threading.Event()

    def start_container(self):
        self.log.append("start")
        self._ended.wait(10)
        self.log.append("started")
        return "http://127.0.0.1:9"

    def wait_for_ready(self, _url):
        self.log.append("wait")

    def interrupt(self):
        self.log.append("interrupt")
        if self.log.count("interrupt") == 2:
            self._ended.set()

    def stop_container(self):
        self.log.append("stop")
        self._ended.set()


class Refuses(Stubborn):
    """Run for somebody else already, and say so when interrupted."""

    def start_container(self):
        super().start_container()
        raise AlreadyRunning("it runs already")

    def interrupt(self):
        super().interrupt()
        self._ended.set()


async def test_a_start_cancelled_twice_ends_before_it_is_stopped():
    provider = Stubborn()
    connecting = asyncio.create_task(GenericEnvClient(provider=provider).connect())
    await asyncio.to_thread(wait_until, lambda: provider.log, 10)
    connecting.cancel()
    await asyncio.to_thread(wait_until, lambda: "interrupt" in provider.log, 10)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting

    assert 2 <= provider.log.count("interrupt")
    log = [each for each in provider.log if each != "interrupt"]
    assert ["start", "started", "wait", "stop"] == log


async def test_a_start_that_misses_an_interruption_gets_another():
    provider = Stubborn()
    connecting = asyncio.create_task(GenericEnvClient(provider=provider).connect())
    await asyncio.to_thread(wait_until, lambda: provider.log, 10)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(connecting, 5)


def test_a_start_interrupted_before_its_thread_begins_asks_the_provider_nothing():
    provider = Stubborn()
    launch = Launch(provider, lambda given: given.start_container())
    launch.interrupt()
    with pytest.raises(ProviderError, match="was interrupted"):
        launch.run()

    assert ["interrupt"] == provider.log


class Slow(Stubborn):
    """Take until it is told to be made, as with an engine that does not answer."""

    being_made: threading.Event
    may_be_made: threading.Event

    def __init__(self):
        super().__init__()
        self.being_made.set()
        assert self.may_be_made.wait(10)

    def start_container(self, image):
        raise AssertionError("never called", image)


async def test_the_loop_runs_on_while_a_provider_is_made(monkeypatch):
    Slow.being_made, Slow.may_be_made = threading.Event(), threading.Event()
    monkeypatch.setattr(runtime, "LocalDockerProvider", Slow)
    handle = GenericEnvClient.from_docker_image("echo")
    connecting = asyncio.ensure_future(_awaited(handle))
    await asyncio.to_thread(Slow.being_made.wait, 10)
    assert not connecting.done()
    connecting.cancel()
    await asyncio.sleep(0)
    Slow.may_be_made.set()
    with pytest.raises(asyncio.CancelledError):
        await connecting

    log = handle._client._provider.log
    assert "start" not in log
    assert "stop" == log[-1]


def test_an_engine_that_never_answers(monkeypatch, tmp_path):
    monkeypatch.setattr(_docker_engine, "_PING_TIMEOUT_S", 0.2)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine")
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(f"{tmp_path}/engine")
        engine.listen()
        with pytest.raises(ProviderError, match=r"did not answer.*[Tt]imed out"):
            _docker_engine.connect("a provider")


async def _awaited(handle):
    return await handle


def test_a_provider_that_runs_for_another_client_is_left_to_it(monkeypatch):
    monkeypatch.setattr(ProcessProvider, "_launch", _sleeping)
    provider = ProcessProvider()
    provider.start()
    try:
        with pytest.raises(ProviderError, match="is already running"):
            GenericEnvClient(provider=provider).sync().connect()
        assert provider._process is not None
        provider._process.refuse_ended()
    finally:
        provider.stop()


async def test_nor_is_it_stopped_by_a_client_cancelled_at_that_moment():
    provider = Refuses()
    connecting = asyncio.create_task(GenericEnvClient(provider=provider).connect())
    await asyncio.to_thread(wait_until, lambda: provider.log, 10)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting

    assert ["start", "interrupt", "started"] == provider.log


class Fails(Stubborn):
    """Fail to start, or to be ready, and to stop."""

    def __init__(self, failing):
        super().__init__()
        self._failing = failing

    def start_container(self):
        if self._failing == "start":
            raise LookupError("the real reason")
        if self._failing == "cancelled":
            return super().start_container()
        return "http://127.0.0.1:9"

    def interrupt(self):
        self._ended.set()

    def stop_container(self):
        super().stop_container()
        raise OSError("no stop")  # as often as it is asked


async def test_a_failing_stop_hides_no_error_of_the_start():
    with pytest.raises(LookupError, match="the real reason") as raised:
        await GenericEnvClient(provider=Fails("start")).connect()

    (note,) = raised.value.__notes__
    assert "the provider could not be stopped either: OSError('no stop')" == note


async def test_nor_of_the_connection():
    with pytest.raises(ConnectionError) as raised:
        await GenericEnvClient(provider=Fails("connect")).connect()

    assert "no stop" in raised.value.__notes__[0]


async def test_nor_a_cancellation_or_a_timeout():
    provider = Fails("cancelled")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(GenericEnvClient(provider=provider).connect(), 0.3)

    assert "stop" in provider.log


class Stalls(Stubborn):
    """Start or stop only once the engine answers again."""

    def __init__(self, where):
        super().__init__()
        self._where = where
        self.answers = threading.Event()

    def start_container(self):
        self.log.append("start")
        if self._where == "start":
            self.answers.wait(20)
        return "http://127.0.0.1:9"

    def wait_for_ready(self, _url):
        if self.log.count("start") > 1:
            raise LookupError("the second time")
        self._ended.wait(20)

    def interrupt(self):
        self._ended.set()

    def stop_container(self):
        if self._where == "stop":
            self.answers.wait(20)
        self.log.append("stop")


@pytest.mark.parametrize("where", ["start", "stop"])
async def test_a_cancelled_start_waits_for_no_engine_that_stalls(
    where, monkeypatch, caplog
):
    monkeypatch.setattr(provider_module, "_PATIENCE_S", 0.3)
    provider = Stalls(where)
    client = GenericEnvClient(provider=provider)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.connect(), 0.3)

    assert time.monotonic() - began < 3
    assert "Stalls does not answer; what it has started is removed once" in caplog.text
    assert ["start"] == provider.log
    provider.answers.set()
    # The next start waits for that, and the engine has nothing of the first one's.
    with pytest.raises(LookupError):
        await client.connect()
    assert ["start", "stop", "start", "stop"] == provider.log


def test_what_is_left_is_removed_at_the_exit():
    code = (
        "import asyncio\n"
        "from tests.unit.providers import test_client_provider as tests\n"
        "tests.provider_module._PATIENCE_S = 0.1\n"
        "provider = tests.Stalls('start')\n"
        "client = tests.GenericEnvClient(provider=provider)\n"
        "provider.stop_container = lambda: print('stopped', flush=True)\n"
        "async def connect():\n"
        "    await asyncio.wait_for(client.connect(), 0.2)\n"
        "try:\n"
        "    asyncio.run(connect())\n"
        "except TimeoutError:\n"
        "    print('timeout', flush=True)\n"
        "tests.threading.Timer(0.5, provider.answers.set).start()\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},  # noqa: TID251 - handed on
        stdout=subprocess.PIPE,
        text=True,
        timeout=15,
        check=False,
    )

    assert ["timeout", "stopped"] == done.stdout.split()


def test_an_idle_provider_that_is_interrupted_starts_all_the_same(monkeypatch):
    monkeypatch.setattr(ProcessProvider, "_launch", _sleeping)
    provider = ProcessProvider()
    provider.interrupt()
    try:
        assert "http://127.0.0.1:9" == provider.start()
    finally:
        provider.stop()


def _sleeping(_provider, _port, env_vars):
    told = re.compile(r"is served on http://(\S+)")
    code = (
        "import time; print('is served on http://127.0.0.1:9', flush=True); "
        "time.sleep(60)"
    )
    return Child("a server", [sys.executable, "-c", code], env_vars, told=told)
