"""Every Python example of the README runs against a real server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.integration.first_light.documents import EXAMPLE_URL, Document, run, serve
from tests.support.processes import ROOT

from openenv.core.generic_client import GenericEnvClient

if TYPE_CHECKING:
    from pathlib import Path

README = Document("README.md")
ENVIRONMENTS = ROOT / "envs"


@pytest.fixture(scope="module")
def grid_world_url():
    with serve("grid_world_env.server.app:app", ENVIRONMENTS) as server:
        yield f"http://127.0.0.1:{server.wait_for_port()}"


def test_the_readme_has_the_examples_that_are_run_here():
    clients = [example for example in README.programs if EXAMPLE_URL in example]

    assert (4, 3) == (len(README.programs), len(clients))


@pytest.mark.parametrize("number", [0, 1])
def test_a_typed_client_example_plays_an_episode(number: int, grid_world_url: str):
    printed = run(README.programs[number], ENVIRONMENTS, grid_world_url)

    assert re.fullmatch(r"\d+ steps, reward -?[\d.]+\n", printed)


def test_the_generic_client_example_steps_once(grid_world_url: str):
    printed = run(README.programs[3], ENVIRONMENTS, grid_world_url)

    assert printed in {"moved\n", "bumped\n", "goal\n", "pit\n"}


def test_the_environment_example_serves_a_game(tmp_path: Path):
    (tmp_path / "guess.py").write_text(README.programs[2])
    with serve("guess:app", tmp_path) as server:
        url = f"http://127.0.0.1:{server.wait_for_port()}"
        with GenericEnvClient(base_url=url).sync() as client:
            client.reset()
            texts = [
                client.step({"number": number}).observation["text"]
                for number in (3, 9, 7)
            ]

    assert texts == ["higher", "lower", "right"]
