"""Why a Pod will not serve, as its status says it.

| where                               | reasons                                  |
|-------------------------------------|------------------------------------------|
| condition `PodScheduled` is false   | `Unschedulable`                          |
| a container has ended, or had       | `OOMKilled`                              |
| a container waits                   | `ImagePullBackOff`, `CrashLoopBackOff` … |
| the Pod has ended                   | `Evicted`, `DeadlineExceeded` …          |

What the kubelet tries again by itself first is no trouble: `ErrImagePull` and one exit
become a back-off within seconds if they stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightkube.models.core_v1 import (
        ContainerState,
        ContainerStateTerminated,
        ContainerStatus,
    )
    from lightkube.resources.core_v1 import Pod

OOM_KILLED: Final = "OOMKilled"
UNSCHEDULABLE: Final = "Unschedulable"

_FATAL_WAITS: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One reason that ends a start.

    Args:
        reason: The cluster's word for it.
        message: The cluster's sentence, maybe empty.
        pod: The Pod's name; None where none could be created.
        output: The last lines of the container that failed.
    """

    reason: str
    message: str = ""
    pod: str | None = None
    output: str = ""


def trouble_of(pod: Pod) -> Trouble | None:
    """Return why a Pod will not serve; None while it may."""
    return next(_troubles(pod), None)


def is_ready(pod: Pod) -> bool:
    """Tell whether a Pod takes sessions."""
    return pod_condition(pod, "Ready") == "True" and not _is_ending(pod)


def pod_condition(pod: Pod, kind: str) -> str | None:
    """Return ``True``, ``False`` or ``Unknown``; None where the Pod does not say."""
    status = pod.status
    conditions = (status and status.conditions) or []
    return next((item.status for item in conditions if item.type == kind), None)


def _troubles(pod: Pod) -> Iterator[Trouble]:
    status = pod.status
    if status is None or _is_ending(pod):
        return
    name = (pod.metadata and pod.metadata.name) or ""
    for condition in status.conditions or ():
        if condition.reason == UNSCHEDULABLE and condition.status == "False":
            yield Trouble(UNSCHEDULABLE, condition.message or "", name)
    statuses = [
        *(status.initContainerStatuses or ()),
        *(status.containerStatuses or ()),
    ]
    for container in statuses:
        yield from _container_troubles(name, container)
    if status.phase == "Failed":
        yield Trouble(status.reason or "Failed", status.message or "", name)
    if status.phase == "Succeeded":
        yield Trouble("Completed", "the server ended by itself with code 0", name)


def _container_troubles(pod: str, container: ContainerStatus) -> Iterator[Trouble]:
    ended = _ended(container.state) or _ended(container.lastState)
    code = "" if ended is None else f"container exited with code {ended.exitCode}"
    output = ((ended and ended.message) or "").rstrip()
    if ended is not None and ended.reason == OOM_KILLED:
        yield Trouble(OOM_KILLED, code, pod, output)
    waiting = container.state and container.state.waiting
    if waiting and waiting.reason in _FATAL_WAITS:
        message = "; ".join(filter(None, (waiting.message, code)))
        yield Trouble(waiting.reason or "", message, pod, output)


def _ended(state: ContainerState | None) -> ContainerStateTerminated | None:
    return None if state is None else state.terminated


def _is_ending(pod: Pod) -> bool:
    return bool(pod.metadata and pod.metadata.deletionTimestamp)
