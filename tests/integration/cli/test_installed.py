"""A fresh package away from this checkout: installed from a wheel, and run by uv.

The index has upstream's `openenv`, so the wheel is offered beside it by UV_FIND_LINKS,
as somebody does who has a wheel that is not published.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.integration.cli.images import make_wheel
from tests.integration.cli.test_serve import free_port
from tests.support.processes import ChildProcess, wait_until

from openenv.cli._scaffold import Template, create_package
from openenv.core.generic_client import GenericEnvClient

UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
ALL = [Template.TYPED, Template.MSGSPEC, Template.MCP]

pytestmark = [
    pytest.mark.skipif(UV is None, reason="uv is not installed"),
    pytest.mark.timeout(280),
]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel that OPENENV_WHEEL names (`make test` does), else a fresh one."""
    named = os.environ.get("OPENENV_WHEEL")  # noqa: TID251 - set by `make test`
    return Path(named) if named else make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def outside(wheel):
    """The variables of a shell that knows nothing of this checkout, but the wheel."""
    own = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "OPENENV_WHEEL")
    inherited = {k: v for k, v in os.environ.items() if k not in own}  # noqa: TID251 - handed on
    return {
        **inherited,
        "UV_FIND_LINKS": str(wheel.parent),
        "UV_PYTHON": sys.executable,
        "COLUMNS": "80",
    }


@pytest.mark.parametrize(
    "template",
    [
        Template.TYPED,
        pytest.param(Template.MSGSPEC, marks=pytest.mark.nightly),
        pytest.param(Template.MCP, marks=pytest.mark.nightly),
    ],
)
def test_uv_runs_the_server_of_a_fresh_package(tmp_path, outside, template):
    create_package("my_env", tmp_path, template)
    port = free_port()
    command = [UV, "run", "server", "--host", "127.0.0.1", "--port", str(port)]

    with ChildProcess(
        command, environment=outside, cwd=tmp_path / "my_env", inherit=False
    ) as child:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_healthy(url, child), 200.0, child.output)

        assert play(url, template)


@pytest.mark.nightly
@pytest.mark.parametrize("template", ALL)
def test_a_fresh_package_is_good_in_an_empty_environment(tmp_path, outside, template):
    folder, scripts = tmp_path / "my_env", tmp_path / "venv" / "bin"
    create_package("my_env", tmp_path, template)

    def run(*command):
        done = subprocess.run(
            [str(each) for each in command],
            cwd=folder,
            env=outside,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return done.stdout

    run(UV, "venv", tmp_path / "venv")
    wanted = (".[dev]", "openenv[cli]")
    run(UV, "pip", "install", "--python", scripts / "python", *wanted)

    assert "Success: no issues found" in run(scripts / "mypy", "--strict", ".")
    assert "3 passed" in run(scripts / "pytest", "-q", "-p", "no:cacheprovider")
    assert "my_env is valid" in run(scripts / "openenv", "validate", "--strict")


def is_healthy(url, child):
    assert child.returncode is None, child.output()
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def play(url, template):
    """Play an episode at random; the last observation is done."""
    rng = random.Random(1)
    with GenericEnvClient(url).sync() as client:
        result = client.reset(seed=7)
        while not result.done:
            number = rng.randint(1, 100)
            if template is Template.MCP:
                call = {"tool_name": "guess", "arguments": {"number": number}}
                result = client.step({"type": "call_tool", **call})
            else:
                result = client.step({"guess": number})
    return result.done
