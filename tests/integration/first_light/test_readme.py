"""Every Python example of the README runs against a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.processes import ROOT, ChildProcess

from openenv.core.generic_client import GenericEnvClient

SERVE = Path(__file__).parent / "serve.py"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE_URL = "http://localhost:8000"


def examples() -> list[str]:
    return BLOCK.findall((ROOT / "README.md").read_text())


def serve(application: str, folder: Path) -> ChildProcess:
    command = [sys.executable, str(SERVE), application, str(folder)]
    return ChildProcess(command)


@pytest.fixture(scope="module")
def grid_world_url():
    with serve("grid_world_env.server.app:app", ROOT / "envs") as server:
        yield f"http://127.0.0.1:{server.wait_for_port()}"


def run(example: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=ROOT / "envs",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_has_the_examples_that_are_run_here():
    clients = [example for example in examples() if EXAMPLE_URL in example]

    assert (len(examples()), len(clients)) == (4, 3)


@pytest.mark.parametrize("number", [0, 1])
def test_a_typed_client_example_plays_an_episode(number: int, grid_world_url: str):
    example = examples()[number].replace(EXAMPLE_URL, grid_world_url)

    assert re.fullmatch(r"\d+ steps, reward -?[\d.]+\n", run(example))


def test_the_generic_client_example_steps_once(grid_world_url: str):
    example = examples()[3].replace(EXAMPLE_URL, grid_world_url)

    assert run(example) in {"moved\n", "bumped\n", "goal\n", "pit\n"}


def test_the_environment_example_serves_a_game(tmp_path: Path):
    (tmp_path / "guess.py").write_text(examples()[2])
    with serve("guess:app", tmp_path) as server:
        url = f"http://127.0.0.1:{server.wait_for_port()}"
        with GenericEnvClient(base_url=url).sync() as client:
            client.reset()
            texts = [
                client.step({"number": number}).observation["text"]
                for number in (3, 9, 7)
            ]

    assert texts == ["higher", "lower", "right"]
