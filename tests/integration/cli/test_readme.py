"""README's section on making an environment, run word for word."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.integration.cli.test_serve import URL
from tests.support.processes import ROOT, ChildProcess

HEADING = "Make your own environment"
SECTION = re.compile(rf"^## {HEADING}\n(.*?)^## ", re.DOTALL | re.MULTILINE)


def commands():
    [section] = SECTION.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    return re.findall(r"^\$ (.*)$", section, re.MULTILINE)


def test_the_section_has_the_commands_that_are_run_here():
    assert [
        ".venv/bin/openenv init my_env",
        ".venv/bin/openenv validate my_env --strict",
        ".venv/bin/openenv serve my_env",
        ".venv/bin/openenv build my_env",
        ".venv/bin/openenv push my_env",
    ] == commands()


def test_the_section_runs_until_it_needs_an_account(tmp_path):
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    script = scripts / "openenv"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m openenv.cli "$@"\n')
    script.chmod(0o755)
    first, second, third, *_ = commands()

    for command in (first, second):
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "my_env is valid: 32 passed" in done.stdout
    with ChildProcess([*third.split(), "--port", "0"], cwd=tmp_path) as child:
        assert child.wait_for_line(URL)
