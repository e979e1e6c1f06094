"""A forked child leaves alone what its parent's provider runs, and is soon done."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import threading
import time

import pytest

from openenv.core._client.provider import ClientProvider
from openenv.core.containers.runtime import (
    DockerSwarmProvider,
    LocalDockerProvider,
    ProcessProvider,
    UVProvider,
)
from openenv.core.containers.runtime._child import Child
from openenv.core.containers.runtime._exit_hook import ExitHook
from openenv.core.containers.runtime.kubernetes_provider import KubernetesProvider

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

_TOLD = re.compile(r"is served on http://(\S+)")
_SLEEPING = (
    "import time; print('is served on http://127.0.0.1:9', flush=True); time.sleep(60)"
)


def in_child(function):
    """Run it in a forked child; return that child's exit code, or its signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    timer = threading.Timer(5, os.kill, (pid, signal.SIGKILL))
    timer.start()
    _, status = os.waitpid(pid, 0)
    timer.cancel()
    return os.waitstatus_to_exitcode(status)


@pytest.fixture
def provider(monkeypatch):
    def launch(_provider, _port, env_vars):
        command = [sys.executable, "-c", _SLEEPING]
        return Child("a server", command, env_vars, told=_TOLD)

    monkeypatch.setattr(ProcessProvider, "_launch", launch)
    provider = ProcessProvider()
    yield provider
    provider.stop()


def test_a_process_is_not_stopped(provider):
    provider.start()

    assert 0 == in_child(provider.stop)
    assert provider._process is not None
    time.sleep(0.1)
    provider._process.refuse_ended()


def test_a_child_may_start_what_its_parent_does_not_run(provider):
    def start_and_stop():
        provider.start()
        pid = provider._process.pid
        provider.stop()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    provider.start()
    provider.stop()

    assert 0 == in_child(start_and_stop)


class Fails:
    """Stand for the engine, or the cluster, that must not be asked."""

    def __getattr__(self, name):
        raise AssertionError(name)


@pytest.mark.parametrize(
    "kind", [DockerSwarmProvider, KubernetesProvider, LocalDockerProvider]
)
def test_neither_engine_nor_cluster_is_asked(kind):
    provider = object.__new__(kind)
    provider._exit_hook = ExitHook()
    provider._container_name = provider._service_name = "name"
    provider._client = provider._run = Fails()
    provider._interrupted = threading.Event()
    provider._exit_hook.set(provider.stop_container)
    try:
        assert 0 == in_child(provider.stop_container)
        assert 0 == in_child(provider.close)
    finally:
        provider._exit_hook.clear()


def test_the_clone_stays():
    provider = object.__new__(UVProvider)
    provider._exit_hook = ExitHook()
    provider._exit_hook.set(provider.stop)
    provider._process = provider._clone = Fails()
    try:
        assert 0 == in_child(provider.stop)
    finally:
        provider._exit_hook.clear()


class Notes:
    log = ()

    def start(self):
        return "http://127.0.0.1:9"

    def wait_for_ready(self):
        pass

    def stop(self):
        self.log = ("stop",)


class Settings:
    base_url = ws_url = None


@pytest.mark.parametrize("base_url", [None, "http://127.0.0.1:9"])
def test_a_client_leaves_its_provider_too(base_url):
    notes, settings = Notes(), Settings()
    settings.base_url = base_url
    held = ClientProvider(notes, settings)
    asyncio.run(held.start())

    def stop():
        asyncio.run(held.stop())
        assert () == notes.log

    assert 0 == in_child(stop)
    asyncio.run(held.stop())
    assert ("stop",) == notes.log
