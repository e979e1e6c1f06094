"""When a client starts, interrupts and stops its provider."""

from __future__ import annotations

import asyncio
import re
import sys
import threading

import pytest
from tests.support.processes import wait_until

from openenv.core.containers.runtime import ProcessProvider
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

    interrupted = ["start", "interrupt", "interrupt", "started"]
    assert [*interrupted, "wait", "stop"] == provider.log


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


def _sleeping(_provider, _port, env_vars):
    told = re.compile(r"is served on http://(\S+)")
    code = (
        "import time; print('is served on http://127.0.0.1:9', flush=True); "
        "time.sleep(60)"
    )
    return Child("a server", [sys.executable, "-c", code], env_vars, told=told)
