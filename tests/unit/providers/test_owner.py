from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from openenv.core.containers.runtime import _owner
from openenv.core.containers.runtime._owner import (
    HOST_LABEL,
    PID_LABEL,
    STARTED_LABEL,
    is_orphaned,
    own_labels,
)


def labels_of_a_dead_process():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    labels = {**own_labels(), PID_LABEL: str(process.pid)}
    process.communicate(b"\n")
    return labels


def test_the_living_keep_what_is_theirs():
    assert not is_orphaned(own_labels())


def test_the_dead_do_not():
    assert is_orphaned(labels_of_a_dead_process())


def test_a_process_id_that_is_used_again_is_another_owner():
    assert is_orphaned({**own_labels(), STARTED_LABEL: "some boot 1"})


def test_the_living_whose_start_is_hidden_keep_what_is_theirs(monkeypatch, tmp_path):
    labels = own_labels()
    dead = labels_of_a_dead_process()
    # Where /proc is mounted with hidepid=2, another user's process is not there.
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to(Path("/proc/self/ns/pid").readlink())
    monkeypatch.setattr(_owner, "_PROC", tmp_path)

    assert not is_orphaned(labels)
    assert is_orphaned(dead)


def test_an_owner_that_could_not_read_its_own_start_is_left_alone():
    assert not is_orphaned({**own_labels(), STARTED_LABEL: ""})


def test_a_dead_owner_that_is_not_reaped_is_an_owner_no_more():
    process = subprocess.Popen([sys.executable, "-c", ""])
    labels = {**own_labels(), PID_LABEL: str(process.pid)}
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert is_orphaned(labels)
    finally:
        process.wait()


@pytest.mark.parametrize(
    "changed",
    [
        {HOST_LABEL: "another machine"},
        {HOST_LABEL: own_labels()[HOST_LABEL] + "0"},
        {PID_LABEL: "not a number"},
        {PID_LABEL: ""},
        {PID_LABEL: "9" * 30},
    ],
)
def test_what_cannot_be_known_is_left_alone(changed):
    assert not is_orphaned({**labels_of_a_dead_process(), **changed})


def test_labels_without_an_owner_are_left_alone():
    assert not is_orphaned({})
    assert not is_orphaned({PID_LABEL: str(os.getpid())})
