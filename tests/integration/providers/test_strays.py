"""What is left of owners that end without closing anything."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.providers import servers
from tests.support.processes import ROOT, wait_until

from openenv.core.containers.runtime import (
    LocalDockerProvider,
    find_strays,
    remove_strays,
)

OWNER = "tests.integration.providers.owner"


@pytest.fixture
def owner(image):
    """Start owners; gives each process and the name of its container."""
    processes = []

    def start(how):
        process = subprocess.Popen(
            [sys.executable, "-m", OWNER, image, how, json.dumps(servers.HANGS)],
            cwd=ROOT,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        word, _, name = process.stdout.readline().strip().partition(" ")
        assert "STARTED" == word
        return process, name

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and what it has forked
        process.communicate()
    remove_strays()


def kill(process):
    """Kill an owner and its guard, as the end of a container around both does."""
    for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
        for guard in children.read_text().split():
            os.kill(int(guard), signal.SIGKILL)
    process.kill()


def exists(engine, name):
    return bool(
        engine.containers.list(
            all=True, ignore_removed=True, filters={"name": f"^/{name}$"}
        )
    )


@pytest.mark.parametrize("how", ["exit", "raise"])
def test_a_container_goes_with_its_interpreter(engine, owner, how):
    process, name = owner(how)
    process.wait(20)

    assert not exists(engine, name)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_container_goes_with_an_owner_that_is_ended(engine, owner, number):
    process, name = owner("wait")
    os.killpg(process.pid, number)
    process.wait(5)

    wait_until(lambda: not exists(engine, name), 10)


def test_it_does_also_where_the_owner_has_forked(engine, owner):
    process, name = owner("fork")
    process.kill()
    process.wait(5)

    wait_until(lambda: not exists(engine, name), 10)


def test_a_container_goes_with_a_forked_child_that_started_it(engine, image):
    provider = LocalDockerProvider(image, command=servers.HANGS, stop_timeout_s=0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        provider.start_container()
        os.write(writing, str(provider._container_name).encode())
        atexit._run_exitfuncs()
        os._exit(0)
    os.waitpid(child, 0)
    name = os.read(reading, 100).decode()
    for end in (reading, writing):
        os.close(end)

    assert name
    assert not exists(engine, name)


def test_a_killed_owners_container_is_found_and_removed(engine, owner):
    process, name = owner("wait")
    assert [] == [stray for stray in find_strays() if stray.name == name]
    kill(process)
    # Not reaped yet: a zombie owns nothing.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    (stray,) = [stray for stray in find_strays() if stray.name == name]

    assert (stray.kind, stray.owner_pid) == ("container", process.pid)
    assert exists(engine, name)
    assert name in {each.name for each in remove_strays()}
    assert not exists(engine, name)


def test_the_next_start_removes_strays_and_leaves_living_owners_alone(
    engine, image, owner
):
    killed, stray = owner("wait")
    _, living = owner("wait")
    kill(killed)
    killed.wait(10)
    provider = LocalDockerProvider(
        image, command=servers.HANGS, stop_timeout_s=0, labels={"my": "label"}
    )
    provider.start_container()
    try:
        assert not exists(engine, stray)
        assert exists(engine, living)
        assert exists(engine, provider._container_name)
    finally:
        provider.stop_container()


def test_a_forked_child_that_exits_leaves_the_container_alone(engine, image):
    provider = LocalDockerProvider(image, command=servers.HANGS, stop_timeout_s=0)
    provider.start_container()
    try:
        child = os.fork()
        if child == 0:
            atexit._run_exitfuncs()
            os._exit(0)
        assert (child, 0) == os.waitpid(child, 0)
        assert exists(engine, provider._container_name)
    finally:
        provider.stop_container()
