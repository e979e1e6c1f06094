"""Every Python example of the documents runs as it stands there."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.first_light.documents import Document, run, serve
from tests.support.processes import ROOT, ChildProcess

from openenv.core.generic_client import GenericEnvClient

ENVIRONMENTS = ROOT / "envs"
WRITING = Document("docs/environments.md")
CLIENT = Document("docs/client.md")
ROLLOUT = Document("docs/rollout.md")
GRID_WORLD = Document("envs/grid_world_env/README.md")
README = Document("README.md")
# Run in test_document.py of tests/integration/auto and tests/integration/mcp, and in
# tests/envs/test_echo_environment.py.
# docs/tutorial.md and docs/troubleshooting.md have test files of their own beside this.
ELSEWHERE = {
    "docs/auto.md",
    "docs/mcp.md",
    "docs/troubleshooting.md",
    "docs/tutorial.md",
    "envs/echo_env/README.md",
}
# What they show needs an image or a cluster: the words are checked, not the deeds.
NEEDS_MORE = {"docs/kubernetes.md", "docs/providers.md"}


def test_every_document_with_python_is_run_here_or_with_the_readme():
    found = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("envs/*/*.md")]
    with_python = {
        str(p.relative_to(ROOT)) for p in found if "```python" in p.read_text()
    }

    run_here = {d.name for d in (README, WRITING, CLIENT, ROLLOUT, GRID_WORLD)}
    assert run_here | ELSEWHERE | NEEDS_MORE == with_python


@pytest.mark.parametrize("name", sorted(NEEDS_MORE))
def test_what_an_example_imports_is_there(name):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    imports = [
        node
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    ours = [node for node in imports if "my_" not in ast.unparse(node)]

    assert ours
    for node in ours:
        exec(compile(ast.Module([node], []), name, "exec"), {})


# --- docs/environments.md ---------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder with all files of the document."""
    folder = tmp_path_factory.mktemp("written")
    WRITING.write_files(folder)
    return folder


@pytest.fixture(scope="module")
def counter_url(written):
    command = [sys.executable, "-m", "openenv.cli", "serve", "./counter_env", "-p", "0"]
    with ChildProcess(command, cwd=written) as server:
        yield server.wait_for_line(r"(http://127\.0\.0\.1:\d+)").group(1)


def test_the_document_has_the_files_it_shows():
    package = {name for name in WRITING.files if name.startswith("counter_env/")}
    text = (ROOT / WRITING.name).read_text()
    shown = text.partition("## The folder")[2].partition("### Models")[0]

    for name in package:
        assert Path(name).name in shown
    assert 7 == len(package)


def test_each_program_about_the_counter_prints_what_it_promises(written, counter_url):
    printed = [run(program, written, counter_url) for program in WRITING.programs]

    refused = "['amount'] Input should be less than or equal to 10"
    assert [
        "2 steps, reward 1.0\n",
        "64\n",
        "",
        f"RuntimeError - call reset() before step()\n{refused}\nTrue\n",
        "2 True 5\n",
    ] == printed


def test_the_counters_own_tests_pass(written):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:randomly",
        "-c",
        "/dev/null",
    ]
    done = subprocess.run(
        [*command, "--rootdir", ".", "test_counter.py"],
        cwd=written,
        env={**os.environ, "PYTHONPATH": str(written)},  # noqa: TID251 - handed on
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_program_that_serves_tells_where(written):
    program = (written / "serve_counter.py").read_text().replace("port=8000", "port=0")
    with ChildProcess([sys.executable, "-c", program], cwd=written) as server:
        url = server.wait_for_line(r"^(http://127\.0\.0\.1:\d+)$").group(1)
        with GenericEnvClient(base_url=url).sync() as env:
            assert {"total": 0, "target": 9, "metadata": {}} == (
                env.reset(target=9).observation
            )


@pytest.mark.parametrize("module", ["struct_env", "dataclass_env"])
def test_other_kinds_of_models_play_and_refuse(written, module):
    with serve(f"{module}:app", written) as server:
        url = f"http://127.0.0.1:{server.wait_for_port()}"
        with GenericEnvClient(base_url=url).sync() as env:
            env.reset()
            result = env.step({"amount": 3})
            steps = env.state()["step_count"]

            assert (3, 3.0, False, 1) == (
                result.observation["total"],
                result.reward,
                result.done,
                steps,
            )
            with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
                env.step({"amount": "three"})


def test_the_asynchronous_environment_plays(written):
    with serve("slow_env:app", written) as server:
        url = f"http://127.0.0.1:{server.wait_for_port()}"
        with GenericEnvClient(base_url=url).sync() as env:
            env.reset()
            done = [env.step({}).done for _ in range(3)]

    assert [False, False, True] == done


# --- docs/client.md and the grid world's README -----------------------------------


@pytest.fixture(scope="module")
def grid_world_url():
    with serve("grid_world_env.server.app:app", ENVIRONMENTS) as server:
        yield f"http://127.0.0.1:{server.wait_for_port()}"


@pytest.mark.parametrize("number", range(len(CLIENT.programs)))
def test_a_client_example_runs_and_prints(number, grid_world_url):
    assert run(CLIENT.programs[number], ENVIRONMENTS, grid_world_url)


@pytest.mark.parametrize("number", range(len(GRID_WORLD.programs)))
def test_an_example_of_the_grid_world_runs_and_prints(number, grid_world_url):
    assert run(GRID_WORLD.programs[number], ENVIRONMENTS, grid_world_url)


# --- docs/rollout.md --------------------------------------------------------------


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    ROLLOUT.write_files(folder)
    return folder


@pytest.mark.parametrize(
    "policy", ["my_policy:act", "typed_policy:act", "stateful_policy:Cycle"]
)
def test_a_policy_of_the_document_plays(policies, policy, tmp_path):
    out = tmp_path / "episodes.jsonl"
    arguments = [
        "grid_world_env",
        "-n",
        "2",
        "-m",
        "4",
        "--policy",
        policy,
        "--out",
        out,
    ]

    _rollout(policies, arguments)

    shown = [json.loads(line) for line in _shown_records()]
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [list(shown[0])] * 4 == [list(record) for record in records]
    assert re.fullmatch(r"4 episodes, \d+ steps\n", run(ROLLOUT.programs[0], tmp_path))


def test_a_rollout_from_python_tells_its_sums():
    printed = run(ROLLOUT.programs[1], ROOT)

    assert re.fullmatch(r"8 of 8, \d+ steps\n", printed)


def test_the_shown_options_are_the_commands(policies):
    text = (ROOT / ROLLOUT.name).read_text()
    told = set(re.findall(r"^\| `(--[a-z-]+)`", text, re.MULTILINE))
    helped = _rollout(policies, ["--help"])

    assert told == set(re.findall(r"--[a-z-]+", helped)) - {"--help"}


def _shown_records() -> list[str]:
    [text] = [text for language, text in ROLLOUT.blocks if language == "json"]
    return text.splitlines()


def _rollout(folder, arguments):
    done = subprocess.run(
        [sys.executable, "-m", "openenv.cli", "rollout", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ENVIRONMENTS), "COLUMNS": "200"},  # noqa: TID251 - handed on
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
