"""One guard for all that a process has on engines, and none where nothing runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.support.processes import wait_until

from openenv.core.containers.runtime import _owner_guard
from openenv.core.containers.runtime._owner_guard import OwnerGuard, StraysGuard


@pytest.fixture
def strays_guard():
    guard = StraysGuard()
    yield guard
    guard.let_go("first")
    guard.let_go("second")


def test_a_guard_serves_all_who_hold_it(strays_guard):
    strays_guard.hold("first")
    guard = strays_guard._guard
    strays_guard.hold("second")
    strays_guard.let_go("first")
    strays_guard.let_go("first")

    assert guard is strays_guard._guard
    assert guard.is_alive
    strays_guard.let_go("second")
    assert strays_guard._guard is None
    assert not guard.is_alive


def test_one_that_was_killed_is_replaced(strays_guard):
    strays_guard.hold("first")
    killed = strays_guard._guard
    killed.close()
    strays_guard.hold("second")

    assert strays_guard._guard is not killed
    assert strays_guard._guard.is_alive


def test_a_start_goes_on_without_one(strays_guard, monkeypatch, caplog):
    def refuse(*_, **__):
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    strays_guard.hold("first")

    assert strays_guard._guard is None
    assert "nothing is removed if this process is killed: no more" in caplog.text


def test_a_guard_that_is_closed_runs_nothing(tmp_path):
    guard = OwnerGuard("touch", str(tmp_path / "ran"))
    guard.close()
    guard.close()

    assert not (tmp_path / "ran").exists()


def test_a_guard_runs_when_its_process_has_ended(tmp_path):
    code = (
        f"from {_owner_guard.__name__} import OwnerGuard; import os; "
        f"OwnerGuard('touch', {str(tmp_path / 'ran')!r}); os._exit(0)"
    )
    # Its output is not held open by the guard.
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    wait_until((tmp_path / "ran").exists, 5)
