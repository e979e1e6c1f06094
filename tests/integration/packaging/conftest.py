"""The built wheel and source archive, and an environment with the wheel alone."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `OPENENV_WHEEL` names (`make test` does), else a fresh one."""
    named = os.environ.get("OPENENV_WHEEL")  # noqa: TID251 - set by `make test`
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        "-m",
        "maturin",
        "build",
        "--release",
        "--quiet",
        "--out",
        str(folder),
    )
    (built,) = folder.glob("openenv-*.whl")
    return built


@pytest.fixture(scope="session")
def source_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive that `maturin sdist` makes."""
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "maturin", "sdist", "--out", str(folder))
    (built,) = folder.glob("openenv-*.tar.gz")
    return built


@pytest.fixture(scope="session")
def base_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that holds the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("base") / "venv"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(str(python), "-m", "pip", "install", "--quiet", str(wheel))
    return python


@pytest.fixture(scope="session")
def in_base(base_python: Path) -> Callable[[str], str]:
    """Run a piece of Python in the fresh environment and return what it prints."""
    return lambda code: run(str(base_python), "-W", "error", "-c", code)


def run(*command: str) -> str:
    """Run a command outside the checkout's import path; fails with its output."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # noqa: TID251 - handed on
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()
