"""The tutorial, followed word for word: its files, its commands, what they print."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.integration.first_light.documents import EXAMPLE_URL, Document
from tests.support.processes import ChildProcess

TUTORIAL = Document("docs/tutorial.md")
SERVE = "openenv serve app:app"
# The setting up is what `make setup` and tests/integration/packaging do.
SETTING_UP = (
    "python3 -m venv .venv",
    "source .venv/bin/activate",
    "pip install '/path/to/openenv[core,cli]'",
)


def _commands() -> list[tuple[str, str]]:
    """Each command with what the document shows under it."""
    text = "".join(text for language, text in TUTORIAL.blocks if language == "console")
    parts = text.removeprefix("$ ").split("\n$ ")
    split = [part.strip("\n").partition("\n") for part in parts]
    return [(command, shown) for command, _, shown in split]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The new user's folder, with the server that the tutorial starts."""
    folder = tmp_path_factory.mktemp("tutorial")
    TUTORIAL.write_files(folder)
    command = [sys.executable, "-m", "openenv.cli", *SERVE.split()[1:], "--port", "0"]
    with ChildProcess(command, cwd=folder) as server:
        told = server.wait_for_line(r"^app:app is served on (http://127\.0\.0\.1:\d+)$")
        for file in folder.glob("*.py"):
            file.write_text(file.read_text().replace(EXAMPLE_URL, told.group(1)))
        yield folder, told.group(1)


def test_the_commands_of_the_tutorial_print_what_it_shows(folder):
    where, url = folder
    for command, shown in _commands():
        if command in SETTING_UP or command == SERVE:
            continue

        printed = _run(command.replace(EXAMPLE_URL, url), where)

        if shown:
            assert (command, shown) == (command, printed.strip())


def test_the_tutorial_runs_each_of_its_programs():
    run = " ".join(command for command, _ in _commands())
    text = "\n".join(TUTORIAL.files.values())

    for name in TUTORIAL.files:
        module = name.removesuffix(".py")
        used = rf"from {module} import|python {module}\.py|\b{module}:"
        assert re.search(used, text + run), name
    assert [] == TUTORIAL.programs
    assert {*SETTING_UP, SERVE} < {command for command, _ in _commands()}


def _run(command: str, folder) -> str:
    words = re.sub(r"^openenv ", f"{sys.executable} -m openenv.cli ", command)
    words = re.sub(r"^python ", f"{sys.executable} ", words)
    done = subprocess.run(
        ["bash", "-c", words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
