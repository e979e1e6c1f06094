"""The command `openenv` and little environments for it."""

from __future__ import annotations

import textwrap

import pytest
from tests.integration.rollout.command_line import SMALL_ENVIRONMENT, CommandLine


@pytest.fixture
def openenv(tmp_path):
    line = CommandLine(tmp_path)
    yield line
    line.stop()


@pytest.fixture
def make_environment(tmp_path):
    """Write a little environment into a folder and return the folder."""

    def make(body, name="small_env"):
        folder = tmp_path / name
        (folder / "server").mkdir(parents=True)
        (folder / "openenv.yaml").write_text(f"spec_version: 1\nname: {name}\n")
        (folder / "server" / "__init__.py").touch()
        source = SMALL_ENVIRONMENT.format(body=textwrap.indent(body, "    "))
        (folder / "server" / "app.py").write_text(source)
        return folder

    return make
