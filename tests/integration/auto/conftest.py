"""Environments of this checkout, installed into a folder that is put on the path."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.auto.container import GRID_WORLD
from tests.support.processes import ROOT

from openenv.core.containers.runtime import ProcessProvider

UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """A folder with echo_env and grid_world_env, as an installer leaves them."""
    sources, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("lib")
    for name in ("echo_env", "grid_world_env"):
        shutil.copytree(ROOT / "envs" / name, sources / name)
    command = [UV, "pip", "install", "--quiet", "--offline", "--no-deps"]
    command += ["--no-build-isolation", "--python", sys.executable, "--target", target]
    subprocess.run([*command, *sources.iterdir()], check=True, timeout=100)
    return target


@pytest.fixture
def installed(packages, monkeypatch):
    """Put them on the path of this process."""
    monkeypatch.syspath_prepend(packages)
    return packages


@pytest.fixture(scope="session")
def server():
    """The URL of a grid world that runs."""
    with ProcessProvider(GRID_WORLD) as provider:
        provider.wait_for_ready(60)
        yield provider.base_url
