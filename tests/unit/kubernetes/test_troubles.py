"""What is read in the status of a Pod."""

from __future__ import annotations

import msgspec
import pytest
from lightkube.resources.core_v1 import Pod

from openenv.core.containers.runtime._kubernetes_troubles import (
    Trouble,
    is_ready,
    trouble_of,
)


def pod_of(status, **metadata):
    item = {"metadata": {"name": "maze-1", **metadata}, "status": status}
    return msgspec.convert(item, Pod)


def container(state, *, last_state=None, kind="containerStatuses"):
    status = {
        "name": "environment",
        "image": "maze",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
        "lastState": last_state or {},
    }
    return {"phase": "Running", kind: [status]}


def waiting(reason, message=None):
    return {"waiting": {"reason": reason, "message": message}}


def ended(code, reason="Error", message=None):
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


def scheduled(status, reason=None):
    condition = {"type": "PodScheduled", "status": status, "reason": reason}
    return {"phase": "Pending", "conditions": [{**condition, "message": "no node"}]}


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        (scheduled("False", "Unschedulable"), ("Unschedulable", "no node")),
        (
            container(waiting("ImagePullBackOff", "not found")),
            ("ImagePullBackOff", "not found"),
        ),
        (
            container(waiting("InvalidImageName"), kind="initContainerStatuses"),
            ("InvalidImageName", ""),
        ),
        (
            container(waiting("CrashLoopBackOff", "5m"), last_state=ended(3)),
            ("CrashLoopBackOff", "5m; container exited with code 3"),
        ),
        (
            container(ended(137, "OOMKilled")),
            ("OOMKilled", "container exited with code 137"),
        ),
        (
            container({"running": {}}, last_state=ended(137, "OOMKilled")),
            ("OOMKilled", "container exited with code 137"),
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "disk pressure"},
            ("Evicted", "disk pressure"),
        ),
        (
            {"phase": "Succeeded"},
            ("Completed", "the server ended by itself with code 0"),
        ),
    ],
)
def test_trouble_is_the_clusters_reason_and_text(status, trouble):
    reason, message = trouble

    assert Trouble(reason, message, "maze-1") == trouble_of(pod_of(status))


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"phase": "Pending"},
        scheduled("True"),
        scheduled("False", "SchedulingGated"),
        container(waiting("ContainerCreating")),
        container(waiting("ErrImagePull", "timeout")),
        container(ended(1)),
        container({"running": {}}, last_state=ended(1)),
    ],
)
def test_what_the_cluster_tries_again_is_no_trouble(status):
    assert trouble_of(pod_of(status)) is None


def test_last_output_is_the_termination_message():
    status = container(
        waiting("CrashLoopBackOff"), last_state=ended(1, message="no!\n")
    )

    assert "no!" == trouble_of(pod_of(status)).output


def test_pod_that_is_being_deleted_is_neither_ready_nor_troubled():
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    failed = {"phase": "Failed"}
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

    assert is_ready(pod_of(ready))
    assert not is_ready(pod_of(ready, **leaving))
    assert trouble_of(pod_of(failed)) is not None
    assert trouble_of(pod_of(failed, **leaving)) is None
