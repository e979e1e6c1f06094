from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.integration.providers.conftest import not_here
from tests.support.processes import ROOT


def test_the_engine_stops_in_mid_run_and_comes_back(engine):  # noqa: ARG001 - or skip
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        not_here("a second engine needs root and dockerd")
    # Not pytest's folder: a socket's path may have 107 bytes.
    with tempfile.TemporaryDirectory(
        prefix="openenv-engine-", ignore_cleanup_errors=True
    ) as folder:
        scenario = "tests.integration.providers.engine_stops"
        told = subprocess.run(
            ["unshare", "--net", "--mount", sys.executable, "-m", scenario, folder],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=55,
            check=False,
        )

    assert "DONE" == told.stdout.strip(), told.stderr
    assert not Path(folder).exists()


def _environment():
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'envs'}"}  # noqa: TID251
