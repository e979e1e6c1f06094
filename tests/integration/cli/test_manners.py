"""What holds for every command: help, completion, codes, pipes, no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.support.processes import ROOT

from openenv.errors import ConnectFailed, ProviderError

COMMANDS = [
    *("init", "validate", "serve", "build", "push", "fork"),
    *("list", "ps", "stop", "rollout", "schema"),
]
# What no command may load to tell how it is used.
HEAVY = ("docker", "fastapi", "huggingface_hub", "uvicorn", "yaml")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_fits_eighty_columns(openenv_here, command):
    done = openenv_here(command, "--help")

    assert 0 == done.code
    assert max(map(len, done.out.splitlines())) <= 80
    if command not in {"list", "ps", "rollout"}:
        assert f"openenv {command} " in done.out.partition("Example")[2]


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from openenv.cli._app import app; "
        f"print(sorted(set({HEAVY!r}) & sys.modules.keys()))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert "[]\n" == loaded


def test_without_a_command_help_is_shown_and_the_code_is_2(openenv):
    done = openenv()

    assert 2 == done.code
    assert all(f" {command} " in done.text for command in COMMANDS)


@pytest.mark.parametrize("module", ["openenv.cli._app", "openenv.core._logs"])
def test_ctrl_c_while_the_command_is_imported_is_130(module):
    code = (
        "import builtins, sys, signal\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *arguments, **options):\n"
        f"    if name == {module!r}:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return real(name, *arguments, **options)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from openenv.cli.__main__ import main\n"
        "builtins.__import__ = interrupted\n"
        "sys.argv = ['openenv', '--version']\n"
        "main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert (130, "") == (done.returncode, done.stderr)


def test_finding_the_command_imports_little():
    """Nobody catches a Ctrl-C before `main` is called."""
    code = (
        "import sys, openenv.cli.__main__; "
        "print(sorted({'email', 'zipfile', 'rich', 'typer'} & sys.modules.keys()))"
    )

    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "[]\n" == loaded


def test_the_version_is_told(openenv):
    done = openenv("--version")

    assert 0 == done.code
    assert done.out.startswith("openenv ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_the_commands(openenv, shell):
    words = {"bash": {"COMP_WORDS": "openenv va", "COMP_CWORD": "1"}}.get(
        shell, {"_TYPER_COMPLETE_ARGS": "openenv va"}
    )
    completed = openenv(
        **words,
        _OPENENV_COMPLETE=f"complete_{shell}",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )

    assert 0 == completed.code, completed.text
    assert "validate" in completed.out


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}])
def test_a_pipe_gets_no_escape_codes(openenv, variables):
    texts = [
        openenv("list", **variables),
        openenv("validate", "nowhere", **variables),
        openenv("--help", **variables),
    ]

    assert not any("\x1b" in each.out + each.err for each in texts)


def test_the_schema_can_be_redirected_to_a_file(openenv):
    done = openenv("schema")

    assert 0 == done.code
    assert done.out.startswith("{")


def test_environments_are_listed_with_where_they_are(openenv_here, tmp_path):
    assert "There is no environment here" in openenv_here("list").err
    openenv_here("init", "my_env", "-o", "envs")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "openenv.yaml").write_text("name: [\n")

    done = openenv_here("list")

    assert "my_env envs/my_env server.app:app" in done.text
    assert "broken broken openenv.yaml has errors" in done.text


def test_stop_wants_to_know_what(openenv_here):
    done = openenv_here("stop")

    assert 2 == done.code
    assert "name a container, or give --strays" in done.err


def test_a_container_that_is_none_of_ours_is_not_stopped(openenv):
    pytest.importorskip("docker")

    done = openenv("stop", "none-of-ours", DOCKER_HOST="unix:///nowhere.sock")

    assert 1 == done.code
    assert "the Docker engine does not answer" in done.text


def test_strays_without_an_engine_are_one_sentence(openenv):
    pytest.importorskip("docker")

    done = openenv("stop", "--strays", DOCKER_HOST="unix:///nowhere.sock")

    assert 1 == done.code
    assert done.err.startswith("Error: Docker is not available. ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init", "my_env", "-t", "foo"], "'foo' is not one of 'typed'"),
        (["serve", "-p", "80x"], "must be a valid integer"),
        (["serve", "-p", "-1"], "must be greater than or equal to 0"),
        (["rollout", "x", "-n", "0"], "must be greater than or equal to 1"),
        (["rollout", "nowhere"], "no environment 'nowhere'"),
        (["rollout", "empty"], "no openenv.yaml in envs/empty, empty"),
        (["rollout", "--base-url", "ftp://x"], "unknown scheme 'ftp'"),
        (["rollout", "--base-url", "http://x:y"], "cannot use 'http://x:y'"),
    ],
)
def test_wrong_use_is_2_and_told_in_plain_words(
    openenv_here, tmp_path, arguments, words
):
    (tmp_path / "empty").mkdir()

    done = openenv_here(*arguments)

    assert 2 == done.code, done.text
    assert words in done.text.replace(" │ │ ", " ")
    assert not any(word in done.text for word in ("Value error", "Input", "Played"))


@pytest.mark.parametrize("error", [ProviderError("no cluster"), ConnectFailed("no")])
def test_every_error_of_ours_is_one_sentence(openenv_here, monkeypatch, error):
    def fail():
        raise error

    monkeypatch.setattr("openenv.cli.commands.containers._remove_strays", fail)

    done = openenv_here("stop", "--strays")

    assert 1 == done.code
    assert f"Error: {error}\n" == done.err
