"""`openenv rollout` from the outside: real processes, real sockets."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from tests.integration.rollout.command_line import GRID_WORLD, RUN_TIMEOUT_S, records_of
from tests.support.processes import ChildProcess, wait_until

from openenv.cli._scaffold import Template, create_package

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are found by /proc"
)


def test_fifty_sessions_play_a_hundred_and_fifty_episodes(openenv, tmp_path):
    out = tmp_path / "episodes.jsonl"

    child = openenv.start(
        *("rollout", GRID_WORLD, "--sessions", 50, "--episodes", 150, "--out", out)
    )
    most_threads = 0
    while child.returncode is None:
        most_threads = max(most_threads, threads_of(child))
    done_code = child.wait(RUN_TIMEOUT_S)

    assert done_code == 0, child.output()
    records = records_of(out)
    assert sorted(record["episode"] for record in records) == list(range(150))
    assert {record["session"] for record in records} == set(range(50))
    assert all(record["done"] and not record["truncated"] for record in records)
    assert all("error" not in record and record["steps"] > 0 for record in records)
    assert "150 of 150" in child.output()
    assert "Traceback" not in child.output()
    assert 0 < most_threads <= 8
    assert openenv.processes() == []


def test_same_seed_plays_the_same_episodes(openenv, tmp_path):
    played = []
    for sessions, name in ((3, "a"), (7, "b")):
        out = tmp_path / name
        arguments = ("--sessions", sessions, "--episodes", 20, "--seed", 5)
        done = openenv.run("rollout", GRID_WORLD, *arguments, "--out", out)
        assert done.code == 0, done.output
        keys = ("episode", "seed", "steps", "reward")
        played.append(sorted(tuple(r[k] for k in keys) for r in records_of(out)))

    assert played[0] == played[1]


def test_random_actions_know_nothing_of_what_the_seed_hides(openenv, tmp_path):
    create_package("my_env", tmp_path, Template.TYPED)
    out = tmp_path / "episodes.jsonl"

    done = openenv.run("rollout", "my_env", "-n", 4, "-m", 40, "--out", out)

    assert done.code == 0, done.output
    # One of a hundred numbers in ten guesses.
    assert sum(record["reward"] for record in records_of(out)) < 20


def test_bare_name_is_found_from_the_checkouts_root(openenv):
    openenv.cwd = GRID_WORLD.parent.parent

    done = openenv.run("rollout", "grid_world_env", "--episodes", 2)

    assert done.code == 0, done.output


def test_policy_of_a_module_with_a_typed_client(openenv, tmp_path):
    (tmp_path / "clever.py").write_text("""
from grid_world_env import GridWorldAction, GridWorldEnv, GridWorldObservation

client_class = GridWorldEnv

async def first_legal(observation, episode):
    assert type(observation) is GridWorldObservation
    return GridWorldAction(direction=observation.legal_moves[0])
""")
    out = tmp_path / "out.jsonl"

    arguments = ("--policy", "clever:first_legal", "--sessions", 2, "--episodes", 4)
    done = openenv.run("rollout", GRID_WORLD, *arguments, "--out", out)

    assert done.code == 0, done.output
    assert len(records_of(out)) == 4


def test_policy_with_dicts_and_max_steps(openenv, tmp_path):
    (tmp_path / "bumper.py").write_text("""
def push(observation, episode):
    blocked = {"up", "down", "left", "right"} - set(observation["legal_moves"])
    return {"direction": min(blocked or {"up"})}
""")
    out = tmp_path / "out.jsonl"

    arguments = ("--policy", "bumper:push", "--episodes", 6, "--max-steps", 2)
    done = openenv.run("rollout", GRID_WORLD, *arguments, "--out", out)

    assert done.code == 0, done.output
    assert {record["steps"] for record in records_of(out)} <= {1, 2}
    assert any(record["truncated"] for record in records_of(out))


def test_ctrl_c_keeps_what_is_done_and_exits_130(openenv, tmp_path):
    out = tmp_path / "out.jsonl"
    arguments = ("--sessions", 8, "--episodes", 1_000_000, "--out", out)
    child = openenv.start("rollout", GRID_WORLD, *arguments)
    wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") > 20, 20.0)

    child.send_signal(signal.SIGINT)

    assert child.wait(15.0) == 130, child.output()
    assert len(records_of(out)) > 20
    assert "episodes finished" in child.output()
    assert "Traceback" not in child.output()
    assert openenv.processes() == []


def test_ctrl_c_while_the_server_starts_leaves_nothing(openenv, make_environment):
    folder = make_environment("pass")
    (folder / "server" / "app.py").write_text("import time\ntime.sleep(60)\n")
    child = openenv.start("rollout", folder)
    openenv.server()

    child.send_signal(signal.SIGINT)

    assert child.wait(15.0) == 130, child.output()
    assert openenv.processes() == []


def test_killed_server_fails_with_reasons(openenv, tmp_path):
    out = tmp_path / "out.jsonl"
    arguments = ("--sessions", 8, "--episodes", 1_000_000, "--out", out)
    child = openenv.start("rollout", GRID_WORLD, *arguments)
    wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") > 20, 20.0)

    os.kill(openenv.server(), signal.SIGKILL)

    assert child.wait(20.0) == 1, child.output()
    assert "killed by SIGKILL" in child.output()
    assert "ConnectionClosed" in child.output()
    failed = [r["error"]["type"] for r in records_of(out) if "error" in r]
    assert 0 < len(failed) <= 8
    assert "Traceback" not in child.output()


def test_server_ends_when_the_command_is_killed(openenv, tmp_path):
    out = tmp_path / "out.jsonl"
    arguments = ("--sessions", 2, "--episodes", 1_000_000, "--out", out)
    child = openenv.start("rollout", GRID_WORLD, *arguments)
    wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") > 5, 20.0)

    child.send_signal(signal.SIGKILL)

    wait_until(lambda: openenv.processes() == [], 15.0)


def test_processes_of_the_environment_end_with_it(openenv, make_environment):
    folder = make_environment("pass")
    app = folder / "server" / "app.py"
    more = "import subprocess\nsubprocess.Popen(['sleep', '1000'])\n"
    app.write_text(app.read_text() + more)

    done = openenv.run("rollout", folder)

    assert done.code == 0, done.output
    assert openenv.processes() == []


def test_tools_are_called_by_their_names_and_with_arguments_that_fit(openenv, tmp_path):
    create_package("my_env", tmp_path, Template.MCP)
    out = tmp_path / "episodes.jsonl"

    done = openenv.run("rollout", "my_env", "-n", 4, "-m", 40, "--out", out)

    assert done.code == 0, done.output
    records = records_of(out)
    # A call that names no tool takes no try: such an episode would have no end.
    assert all(record["done"] and record["steps"] <= 10 for record in records)
    assert {0.0, 1.0} == {record["reward"] for record in records}


def test_tools_that_cannot_be_called_at_random_ask_for_a_policy(openenv, tmp_path):
    create_package("my_env", tmp_path, Template.MCP)
    source = tmp_path / "my_env" / "server" / "environment.py"
    number = "Field(ge=LOWEST, le=HIGHEST)"
    source.write_text(
        source.read_text()
        .replace(f"Annotated[int, {number}]", 'Annotated[str, Field(pattern="^1$")]')
        .replace("self._guess(number)", "self._guess(int(number))")
    )

    done = openenv.run("rollout", "my_env")

    assert done.code == 2, done.output
    assert "none of the tools guess can be drawn" in " ".join(done.output.split())
    assert "give --policy" in done.output


def test_failing_episodes_are_counted_by_reason(openenv, make_environment, tmp_path):
    folder = make_environment(
        "def react(self, action):\n"
        "    if self.seed % 2:\n"
        "        raise ArithmeticError('odd seed')\n"
    )
    out = tmp_path / "out.jsonl"

    done = openenv.run("rollout", folder, "-n", 4, "-m", 40, "--out", out)

    assert done.code == 1, done.output
    records = records_of(out)
    odd = {record["episode"] for record in records if record["seed"] % 2}
    assert {record["episode"] for record in records if "error" in record} == odd
    assert {r["error"]["type"] for r in records if "error" in r} == {"ExecutionFailed"}
    assert "ExecutionFailed" in done.output
    assert "odd seed" in done.output
    assert f"{40 - len(odd)} of 40" in done.output


def test_environment_for_one_session_is_played_by_one(openenv, make_environment):
    folder = make_environment("SUPPORTS_CONCURRENT_SESSIONS = False")

    done = openenv.run("rollout", folder, "-n", 3, "-m", 12)

    assert done.code == 0, done.output
    assert "12 of 12" in done.output


def test_server_that_cannot_be_imported_shows_its_last_words(openenv, make_environment):
    folder = make_environment("pass")
    (folder / "server" / "app.py").write_text("raise OSError('no licence')\n")

    done = openenv.run("rollout", folder)

    assert done.code == 1, done.output
    assert "ended before it was ready (exit code 1)" in done.output
    assert "OSError: no licence" in done.output


@pytest.mark.parametrize("command", ["rollout", "serve"])
@pytest.mark.parametrize("app", ["server.app:nope", "server.nope:app"])
def test_wrong_application_is_one_line(openenv, make_environment, command, app):
    folder = make_environment("pass")
    (folder / "openenv.yaml").write_text(f"name: small_env\napp: {app}\n")

    done = openenv.run(command, folder)

    assert done.code == 2, done.output
    words = " ".join(done.output.split())
    assert words.startswith(f"Error: app in {folder}/openenv.yaml is {app}, but ")
    assert "Traceback" not in done.output


def test_module_and_attribute_are_no_environment(openenv):
    done = openenv.run("rollout", "grid_world_env.server.app:app")

    assert done.code == 2, done.output
    assert "a folder with openenv.yaml" in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_policy_without_an_action_is_blamed(openenv, tmp_path):
    (tmp_path / "wordy.py").write_text("def act(observation, episode): return 'up'")
    out = tmp_path / "out.jsonl"

    done = openenv.run("rollout", GRID_WORLD, "--policy", "wordy:act", "--out", out)

    assert done.code == 1, done.output
    [record] = records_of(out)
    assert record["error"]["type"] == "NotAnAction"
    assert "the policy returned 'up', which is no action" in record["error"]["message"]


STRUCT_APP = """
import msgspec
from openenv.core.env_server import Environment, State, create_app
from openenv.core.structs import ActionStruct, ObservationStruct

class Walk(ActionStruct):
    cells: list[int]

class Walker(Environment):
    def reset(self, **kwargs):
        return ObservationStruct()
    def step(self, action, **kwargs):
        return ObservationStruct(done=True)
    @property
    def state(self):
        return State()

app = create_app(Walker, Walk, ObservationStruct)
"""


@pytest.mark.parametrize("kind", ["pydantic", "msgspec"])
def test_refused_field_is_named(openenv, make_environment, tmp_path, kind):
    folder = make_environment("pass")
    action, complaint = {"word": 3}, "word: Input should be a valid string"
    if kind == "msgspec":
        (folder / "server" / "app.py").write_text(STRUCT_APP)
        action, complaint = {"cells": [1, "a"]}, "cells[1]: Expected `int`, got `str`"
    policy = f"def act(observation, episode): return {action!r}"
    (tmp_path / "clumsy.py").write_text(policy)
    out = tmp_path / "out.jsonl"

    done = openenv.run("rollout", folder, "--policy", "clumsy:act", "--out", out)

    assert done.code == 1, done.output
    [record] = records_of(out)
    assert record["error"] == {
        "type": "ValidationFailed",
        "message": f"Invalid message: {complaint}",
    }
    assert complaint.split(":")[0] in done.output


def test_full_disk_is_a_clear_error(openenv):
    done = openenv.run("rollout", GRID_WORLD, "-m", 3, "--out", "/dev/full")

    assert done.code == 1, done.output
    assert "cannot write to /dev/full: No space left on device" in done.output
    assert "Traceback" not in done.output
    assert openenv.processes() == []


def test_too_few_open_files_are_told_before_anything_starts():
    script = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (128, 256))\n"
        "sys.argv[1:] = ['rollout', 'X', '-n', '1000', '-m', '1000',"
        " '--base-url', 'http://127.0.0.1:1']\n"
        "from openenv.cli.__main__ import main\n"
        "main()\n"
    )
    with ChildProcess([sys.executable, "-c", script]) as child:
        assert child.wait(20.0) == 1
        assert "1000 sessions need 1064 open files" in child.output()
        assert "Traceback" not in child.output()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nope_env",), "no environment 'nope_env'"),
        ((), "name an environment or give --base-url"),
        ((GRID_WORLD, "--policy", "nope"), "must be module:function"),
        ((GRID_WORLD, "--policy", "no_such_mod:f"), "cannot import policy module"),
        ((GRID_WORLD, "--policy", "no_such.py:f"), "--policy no_such:f"),
        ((GRID_WORLD, "--policy", "json:nope"), "has no policy 'nope'"),
        ((GRID_WORLD, "--policy", "json:loads"), "must take (observation, episode)"),
        ((GRID_WORLD, "--sessions", "0"), "--sessions"),
        ((GRID_WORLD, "--episodes", "many"), "--episodes"),
        ((GRID_WORLD, "--out", "no/such/folder/x"), "cannot write to"),
        ((GRID_WORLD, "--frobnicate"), "--frobnicate"),
    ],
)
def test_wrong_use_exits_2_without_a_traceback(openenv, arguments, complaint):
    done = openenv.run("rollout", *arguments)

    assert done.code == 2, done.output
    assert complaint in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_running_server_is_used_by_its_url(openenv, tmp_path):
    server = openenv.start("serve", GRID_WORLD, "--port", 0)
    url = server.wait_for_line(r"(http://127\.0\.0\.1:\d+)").group(1)
    out = tmp_path / "out.jsonl"

    arguments = ("--base-url", url, "-n", 5, "-m", 10, "--out", out)
    done = openenv.run("rollout", *arguments)

    assert done.code == 0, done.output
    assert len(records_of(out)) == 10
    assert server.returncode is None
    server.send_signal(signal.SIGINT)
    server.wait(15.0)
    assert "Traceback" not in server.output()


def test_taken_port_is_told_without_a_traceback(openenv):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = openenv.run("serve", GRID_WORLD, "--port", port)

    assert done.code == 1, done.output
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.output
    assert "Traceback" not in done.output


def test_url_without_a_server_fails_in_words(openenv):
    done = openenv.run("rollout", "--base-url", "http://127.0.0.1:9")

    assert done.code == 1, done.output
    assert "http://127.0.0.1:9/schema" in done.output
    assert "Traceback" not in done.output


def test_terminal_sees_the_bar_and_a_pipe_does_not(openenv):
    arguments = ("rollout", GRID_WORLD, "-n", 4, "-m", 40)
    terminal = openenv.run(*arguments, FORCE_COLOR="1", TERM="xterm-256color")
    pipe = openenv.run(*arguments)

    assert "steps/s" in terminal.output
    assert "\x1b[" in terminal.output
    assert "\x1b[" not in pipe.output


def test_version_is_told(openenv):
    done = openenv.run("--version")

    assert done.code == 0
    assert done.output.startswith("openenv ")


def test_missing_extra_is_named():
    script = (
        "import sys\nsys.modules['typer'] = None\n"
        "from openenv.cli.__main__ import main\nmain()\n"
    )
    with ChildProcess([sys.executable, "-c", script]) as child:
        assert child.wait(20.0) == 1
        assert child.output() == (
            "the command openenv needs the package 'typer': "
            "pip install 'openenv[cli]'\n"
        )


def threads_of(child):
    try:
        return child.threads()
    except (OSError, AssertionError):  # it has just ended
        return 0
