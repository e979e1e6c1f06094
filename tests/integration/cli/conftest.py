"""The command `openenv` in child processes, and fresh packages for it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

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
