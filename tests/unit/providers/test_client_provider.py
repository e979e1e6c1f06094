"""When a client starts, interrupts and stops its provider."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.support.processes import wait_until

from openenv.core.generic_client import GenericEnvClient


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
