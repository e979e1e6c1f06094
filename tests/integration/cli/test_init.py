"""`openenv init` from the outside: what it writes works at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TEMPLATES = ("typed", "msgspec", "mcp")


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_fresh_packages_tests_pass(openenv, tmp_path, template):
    made = openenv("init", "my_env", "--template", template)

    assert 0 == made.code, made.text
    assert "Created 14 files" in made.out
    tests = run_in(tmp_path / "my_env", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert 0 == tests.returncode, tests.stdout
    assert "3 passed" in tests.stdout


@pytest.mark.timeout(240)  # mypy reads pydantic and FastAPI once for all of them
def test_fresh_packages_pass_mypy_strict(openenv_here, tmp_path):
    names = [f"{template}_one" for template in TEMPLATES]
    for name, template in zip(names, TEMPLATES, strict=True):
        assert 0 == openenv_here("init", name, "--template", template).code

    checked = run_in(tmp_path, "-m", "mypy", "--strict", *names, timeout=230)

    assert 0 == checked.returncode, checked.stdout


def test_a_wrong_name_is_one_line_and_code_2(openenv_here, tmp_path):
    done = openenv_here("init", "my-env")

    assert 2 == done.code
    assert done.err.startswith("Error: 'my-env' is not a valid Python identifier")
    assert 1 == done.err.count("\n")
    assert [] == list(tmp_path.iterdir())


def test_an_unknown_template_is_code_2(openenv_here):
    done = openenv_here("init", "my_env", "--template", "nope")

    assert 2 == done.code
    assert "'nope' is not one of" in done.text


def test_a_second_time_is_refused(openenv_here):
    assert 0 == openenv_here("init", "my_env").code

    done = openenv_here("init", "my_env")

    assert 2 == done.code
    assert "my_env already exists and is not empty" in done.err


def test_a_link_to_nothing_is_named_as_it_is(openenv_here, tmp_path):
    (tmp_path / "dang").symlink_to("/nonexistent")

    done = openenv_here("init", "dang")

    assert 2 == done.code
    assert "Error: dang is a link to what is not there\n" == done.err


def test_what_the_packages_own_tools_are_called_is_taken(openenv_here):
    done = openenv_here("init", "mypy")

    assert 2 == done.code
    assert "'mypy' is the name of another package; try mypy_env" in done.err


def test_a_place_that_cannot_be_written_is_one_line(openenv_here, tmp_path):
    (tmp_path / "file").touch()

    done = openenv_here("init", "my_env", "-o", "file/below")

    assert 1 == done.code
    assert done.err.startswith("Error: file/below: ")


def run_in(folder, *arguments, timeout=50):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": ""},  # noqa: TID251 - handed on
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
