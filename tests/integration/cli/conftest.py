"""The command `openenv` in child processes, and fresh packages for it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass

import pytest
from tests.integration.cli.images import build_base

from openenv.cli import _console
from openenv.cli.__main__ import main

RUN_TIMEOUT_S = 55


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def text(self):
        """Both outputs, with every run of white space as one blank."""
        return " ".join((self.out + " " + self.err).split())


@pytest.fixture
def openenv(tmp_path):
    """Run a command in `tmp_path`, without a terminal."""

    def run(*arguments, cwd=tmp_path, timeout_s=RUN_TIMEOUT_S, **variables):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "openenv.cli", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "80", **variables},  # noqa: TID251 - handed on
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def openenv_here(tmp_path, monkeypatch, capsys):
    """Run a command as `openenv` does, but in this process: where one adds nothing.

    Not for commands that import a package: it would stay imported.
    """

    def run(*arguments, cwd=tmp_path, **variables):
        columns = variables.pop("COLUMNS", "80")
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            patch.setenv("COLUMNS", columns)
            patch.setattr(sys, "argv", ["openenv", *map(str, arguments)])
            for name, value in variables.items():
                patch.setenv(name, value)
            for console in (_console.output, _console.status):
                patch.setattr(console, "_width", int(columns))
            with pytest.raises(SystemExit) as ended:
                main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err, captured.err
        return Done(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def engine():
    docker = pytest.importorskip("docker")
    client = docker.from_env()
    try:
        client.ping()
    except docker.errors.DockerException:
        pytest.skip("no Docker engine answers")
    yield client
    client.close()


@pytest.fixture(scope="session")
def base(engine):
    images = pytest.importorskip("tests.images.build")
    tag = f"openenv-cli-test-base:{uuid.uuid4().hex[:8]}"
    build_base(engine, images.base_image(engine), tag)
    yield tag
    engine.images.remove(tag, force=True)


@pytest.fixture(scope="session")
def base_with_tools(engine):
    """As `base`, with what the extra `mcp` needs."""
    images = pytest.importorskip("tests.images.build")
    tag = f"openenv-cli-test-tools:{uuid.uuid4().hex[:8]}"
    files = images.packages(["fastmcp"])
    build_base(engine, images.base_image(engine), tag, files)
    yield tag
    engine.images.remove(tag, force=True)
