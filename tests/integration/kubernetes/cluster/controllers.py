"""The controllers that a workload relies on: Jobs, and the garbage collector.

A Job's Pods are created by it, ended at its deadline or when it is deleted, and the
Job itself is deleted some time after it has finished. Objects whose owners are all
gone are deleted. Pods pass the admission of Pod Security before they are created.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import secrets
import time
from typing import TYPE_CHECKING

from tests.integration.kubernetes.cluster.store import owner_ids, timestamp

if TYPE_CHECKING:
    from tests.integration.kubernetes.cluster.store import JsonObject, Store

_RESYNC_S = 0.05  # deadlines pass without a change


class Controllers:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._started: dict[str, float] = {}
        self._finished: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            changed = self._store.changed
            for job in self._store.of_kind("Job"):
                self._sync_job(job)
            self._collect_garbage()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _RESYNC_S)

    def _sync_job(self, job: JsonObject) -> None:
        uid, spec = job["metadata"]["uid"], job["spec"]
        pods = self._store.owned_by(job, "Pod")
        if "deletionTimestamp" in job["metadata"]:
            self._end(pods)
            if not pods:
                self._store.remove(job)
            return
        if uid in self._finished:
            if (
                time.monotonic() - self._finished[uid]
                >= spec["ttlSecondsAfterFinished"]
            ):
                self._store.remove(job)
            return
        started = self._started.setdefault(uid, time.monotonic())
        if time.monotonic() - started >= spec["activeDeadlineSeconds"]:
            self._fail(job, pods, "DeadlineExceeded")
        elif _restarts(pods) > spec["backoffLimit"]:
            self._fail(job, pods, "BackoffLimitExceeded")
        else:
            self._create_missing(job, pods)

    def _create_missing(self, job: JsonObject, pods: list[JsonObject]) -> None:
        for _ in range(job["spec"]["parallelism"] - len(pods)):
            pod = _pod_of(job)
            violations = _violations(pod)
            if violations:
                name = pod["metadata"]["name"]
                self._refuse(
                    job,
                    f'Error creating: pods "{name}" is forbidden: violates '
                    f'PodSecurity "restricted:latest": {", ".join(violations)}',
                )
                return
            self._store.create(pod)

    def _refuse(self, job: JsonObject, message: str) -> None:
        told = [
            event
            for event in self._store.of_kind("Event")
            if event["involvedObject"]["uid"] == job["metadata"]["uid"]
        ]
        if not told:
            self._store.record_event(job, "Warning", "FailedCreate", message)

    def _fail(self, job: JsonObject, pods: list[JsonObject], reason: str) -> None:
        self._end(pods)
        if pods:
            return
        failed = copy.deepcopy(job)
        condition = {"type": "Failed", "status": "True", "reason": reason}
        failed["status"] = {"conditions": [condition], "startTime": timestamp()}
        self._finished[job["metadata"]["uid"]] = time.monotonic()
        self._store.update(failed)

    def _end(self, pods: list[JsonObject]) -> None:
        for pod in pods:
            self._store.mark_for_deletion(pod)

    def _collect_garbage(self) -> None:
        alive = {item["metadata"]["uid"] for item in self._store.objects.values()}
        for item in list(self._store.objects.values()):
            owners = owner_ids(item)
            if not owners or owners & alive:
                continue
            if item["kind"] == "Pod":
                self._store.mark_for_deletion(item)
            else:
                self._store.remove(item)


def _pod_of(job: JsonObject) -> JsonObject:
    template = copy.deepcopy(job["spec"]["template"])
    metadata = job["metadata"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "name": f"{metadata['name']}-{secrets.token_hex(3)[:5]}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
        "status": {"phase": "Pending"},
    }


def _restarts(pods: list[JsonObject]) -> int:
    return sum(
        status["restartCount"]
        for pod in pods
        for status in pod["status"].get("containerStatuses", ())
    )


def _violations(pod: JsonObject) -> list[str]:
    """Return what the standard "restricted" finds, in the words of its admission.

    Source: kubernetes.io/docs/concepts/security/pod-security-standards
    """
    whole, found = pod["spec"].get("securityContext", {}), []
    for container in pod["spec"]["containers"]:
        own = container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False:
            found.append("allowPrivilegeEscalation != false")
        if "ALL" not in own.get("capabilities", {}).get("drop", ()):
            found.append("unrestricted capabilities")
        if not own.get("runAsNonRoot", whole.get("runAsNonRoot")):
            found.append("runAsNonRoot != true")
        if own.get("runAsUser", whole.get("runAsUser")) == 0:
            found.append("runAsUser=0")
        profile = own.get("seccompProfile", whole.get("seccompProfile", {}))
        if profile.get("type") not in {"RuntimeDefault", "Localhost"}:
            found.append("seccompProfile")
    return found
