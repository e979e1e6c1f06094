"""One server of the grid world for all scripts."""

from __future__ import annotations

import sys

import pytest
from tests.support.processes import ROOT, ChildProcess


@pytest.fixture(scope="module")
def url():
    server = ROOT / "tests" / "integration" / "first_light" / "serve.py"
    command = [
        sys.executable,
        str(server),
        "grid_world_env.server.app:app",
        str(ROOT / "envs"),
    ]
    sessions = {"OPENENV_MAX_CONCURRENT_ENVS": "2000"}
    with ChildProcess(command, environment=sessions) as child:
        yield f"http://127.0.0.1:{child.wait_for_port()}"
