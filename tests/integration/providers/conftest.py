"""The real engine, and the rule that a test leaves nothing behind on it."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import NoReturn

import docker
import docker.errors
import pytest
from tests.images.build import environment_image
from tests.support.processes import wait_until

from openenv.core.containers.runtime import DockerSwarmProvider
from openenv.core.containers.runtime._owner import PID_LABEL


def not_here(reason) -> NoReturn:
    """Skip on a machine that lacks something; in CI that is a failure."""
    (pytest.fail if os.getenv("CI") else pytest.skip)(reason)
    raise AssertionError


@pytest.fixture(scope="session")
def engine():
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as exc:
        not_here(f"the Docker engine does not answer: {exc}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(engine):
    return environment_image(engine)


@pytest.fixture(scope="module")
def swarm(engine):
    """Make a swarm; leave it afterwards and remove the networks that it brought."""
    if engine.info()["Swarm"]["LocalNodeState"] != "inactive":
        not_here("the engine is in a swarm, which is not the tests' to leave")
    DockerSwarmProvider().close()
    yield engine
    engine.swarm.leave(force=True)
    with contextlib.suppress(docker.errors.NotFound):
        engine.networks.get("docker_gwbridge").remove()


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Containers, services, volumes, networks, children and threads as before."""
    engine = (
        request.getfixturevalue("engine")
        if {"engine", "image"} & {*request.fixturenames}
        else None
    )
    if "swarm" in request.fixturenames:
        request.getfixturevalue("swarm")
    before = _traces(engine)
    yield
    wait_until(
        lambda: _traces(engine) == before,
        10,
        lambda: f"left behind: {_difference(before, _traces(engine))}",
    )


def _traces(engine):
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    traces = {
        "children": sorted(children.split()),
        "output threads": sorted(
            thread.name
            for thread in threading.enumerate()
            if thread.name.startswith("openenv-output")
        ),
    }
    if engine is not None:
        owned = engine.api.containers(all=True, filters={"label": PID_LABEL})
        traces["containers"] = sorted(each["Id"] for each in owned)
        traces["volumes"] = sorted(each.name for each in engine.volumes.list())
        # A swarm makes this one by and by; the fixture `swarm` removes it.
        networks = {each.name for each in engine.networks.list()} - {"docker_gwbridge"}
        traces["networks"] = sorted(networks)
    return traces


def _difference(before, after):
    return {
        name: (before[name], after[name])
        for name in after
        if before[name] != after[name]
    }
