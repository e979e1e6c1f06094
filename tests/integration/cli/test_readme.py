"""README's section on making an environment, run word for word."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys

import pytest
from tests.integration.cli.fake_hub import TOKEN, FakeHub
from tests.integration.cli.test_build import play_from_image
from tests.integration.cli.test_serve import URL
from tests.support.processes import ROOT, ChildProcess

from openenv.cli._staging import choose_wheel

HEADING = "Make your own environment"
SECTION = re.compile(rf"^## {HEADING}\n(.*?)^## ", re.DOTALL | re.MULTILINE)


def commands():
    [section] = SECTION.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    return re.findall(r"^\$ (.*)$", section, re.MULTILINE)


def test_the_section_has_the_commands_that_are_run_here():
    assert [
        ".venv/bin/openenv init my_env",
        ".venv/bin/openenv validate my_env --strict",
        ".venv/bin/openenv serve my_env",
        ".venv/bin/openenv build my_env",
        ".venv/bin/openenv push my_env",
    ] == commands()


def test_the_section_runs_until_it_needs_an_engine(checkout):
    first, second, third, *_ = commands()

    run(checkout, first)
    assert "my_env is valid: 37 passed" in run(checkout, second)
    with ChildProcess([*third.split(), "--port", "0"], cwd=checkout) as child:
        assert child.wait_for_line(URL)


@pytest.mark.nightly
@pytest.mark.timeout(500)
def test_the_section_runs_word_for_word(checkout, base_as_python, hub):
    del base_as_python
    account = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(checkout)}
    first, second, third, fourth, fifth = commands()

    run(checkout, first)
    assert "my_env is valid: 37 passed" in run(checkout, second)
    with ChildProcess(third.split(), cwd=checkout) as child:
        assert "http://127.0.0.1:8000" == child.wait_for_line(URL).group(1)
        child.send_signal(signal.SIGINT)
        assert 130 == child.wait(20.0)
    assert "openenv-my: " in run(checkout, fourth)
    assert 5 == asyncio.run(play_from_image("openenv-my", "typed", 5))
    assert f"{hub.url}/spaces/me/my_env\n" == run(checkout, fifth, **account)
    assert "Dockerfile" in hub.spaces["me/my_env"].files


@pytest.fixture
def checkout(tmp_path):
    """A folder with the command where `make setup` puts it."""
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    script = scripts / "openenv"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m openenv.cli "$@"\n')
    script.chmod(0o755)
    return tmp_path


@pytest.fixture
def base_as_python(engine, base):
    """Lend the tests' base the name of the image that the Dockerfile asks for.

    Here is no network to get the real one from, and no index for its pip.
    """
    if choose_wheel(None) is None:
        pytest.skip("the wheel that the running openenv came from is gone")
    name = f"python:3.{sys.version_info.minor}-slim"
    if engine.images.list(name):
        yield  # the real one
        return
    engine.images.get(base).tag(name)
    yield
    for each in (name, "openenv-my"):
        if engine.images.list(each):
            engine.images.remove(each, force=True)


@pytest.fixture
def hub():
    fake = FakeHub()
    yield fake
    fake.stop()


def run(folder, command, **variables):
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, **variables},  # noqa: TID251 - handed on
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
