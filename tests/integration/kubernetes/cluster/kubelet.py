"""The scheduler and the kubelet: each Pod is a real process at an address of its own.

A Pod's address is one of 127.0.0.0/8, so any number of servers can listen on the port
their Pods name. Memory limits are kept by looking at the process. The reasons, events
and orders of states are those of Kubernetes; probes are ten times as fast, and the
liveness probe is not asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import os
import re
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from tests.integration.kubernetes.cluster.images import IMAGES
from tests.integration.kubernetes.cluster.store import key_of, timestamp

if TYPE_CHECKING:
    from tests.integration.kubernetes.cluster.store import JsonObject, Store

NODE_MEMORY = 8 * 2**30
PROBE_SPEED = 0.1
CRASH_BACK_OFF_S = 10.0
_LOOK_S = 0.02
_OOM_EXIT = 137
_LOG_BYTES = 2048  # what FallbackToLogsOnError keeps
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


class Kubelet:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._addresses = itertools.count(1)
        self._lives: dict[str, asyncio.Task[None]] = {}
        self.processes: dict[str, asyncio.subprocess.Process] = {}

    async def run(self) -> None:
        try:
            while True:
                changed = self._store.changed
                for pod in self._store.of_kind("Pod"):
                    uid = pod["metadata"]["uid"]
                    if uid not in self._lives:
                        self._lives[uid] = asyncio.ensure_future(self._life(pod))
                await changed.wait()
        finally:
            for life in self._lives.values():
                life.cancel()
            await asyncio.gather(*self._lives.values(), return_exceptions=True)

    async def _life(self, pod: JsonObject) -> None:
        life = PodLife(self._store, pod, next(self._addresses), self.processes)
        serving = asyncio.ensure_future(life.serve())
        try:
            while not life.is_marked_for_deletion():
                if serving.done():
                    serving.result()
                await self._store.changed.wait()
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await life.end()
            self.processes.pop(pod["metadata"]["uid"], None)
            self._store.remove(pod)


class PodLife:
    """One Pod, from Pending until it is deleted."""

    def __init__(
        self,
        store: Store,
        pod: JsonObject,
        number: int,
        processes: dict[str, asyncio.subprocess.Process],
    ) -> None:
        self._store = store
        self._key = key_of(pod)
        self._uid = pod["metadata"]["uid"]
        self._container = pod["spec"]["containers"][0]
        self._grace_s = pod["spec"]["terminationGracePeriodSeconds"]
        self.address = (
            f"127.{10 + os.getpid() % 200}.{number // 250}.{number % 250 + 1}"
        )
        self._processes = processes
        self._process: asyncio.subprocess.Process | None = None
        self._log = Path(tempfile.mkstemp(prefix="openenv-pod-")[1])
        self._restarts = 0
        self._last_state: JsonObject = {}

    def is_marked_for_deletion(self) -> bool:
        pod = self._store.objects.get(self._key)
        return pod is None or "deletionTimestamp" in pod["metadata"]

    async def serve(self) -> None:
        if not self._schedule() or not await self._pull():
            return
        while True:
            code, reason = await self._run_container()
            ended = {"exitCode": code, "reason": reason, "finishedAt": timestamp()}
            if code:
                ended["message"] = self._log.read_text()[-_LOG_BYTES:]
            self._set("Running", state={"terminated": ended})
            if not code:
                self._set("Succeeded", state={"terminated": ended})
                return
            self._last_state = {"terminated": ended}
            if self._restarts:
                await self._back_off()
            self._restarts += 1

    async def end(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self._grace_s)
        self._kill()
        self._log.unlink()

    # --- before the container -------------------------------------------------------

    def _schedule(self) -> bool:
        requests = self._container.get("resources", {}).get("requests", {})
        limits = self._container.get("resources", {}).get("limits", {})
        asked = requests.get("memory", limits.get("memory", "0"))
        condition = {"type": "PodScheduled", "status": "True"}
        if _bytes(asked) <= NODE_MEMORY:
            self._set("Pending", conditions=[condition])
            return True
        message = (
            "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are "
            "available: 1 No preemption victims found for incoming pod."
        )
        refused = {"status": "False", "reason": "Unschedulable", "message": message}
        self._set("Pending", conditions=[condition | refused])
        self._event("Warning", "FailedScheduling", message)
        return False

    async def _pull(self) -> bool:
        image = self._container["image"]
        if image in IMAGES:
            return True
        cause = (
            f'failed to pull and unpack image "{image}": failed to resolve reference '
            f'"{image}": {image}: not found'
        )
        problem = f"rpc error: code = NotFound desc = {cause}"
        self._set(
            "Pending", state={"waiting": {"reason": "ErrImagePull", "message": problem}}
        )
        self._event("Warning", "Failed", f'Failed to pull image "{image}": {problem}')
        self._event("Warning", "Failed", "Error: ErrImagePull")
        await asyncio.sleep(_LOOK_S)
        waiting = f'Back-off pulling image "{image}": ErrImagePull: {problem}'
        self._set(
            "Pending",
            state={"waiting": {"reason": "ImagePullBackOff", "message": waiting}},
        )
        self._event("Normal", "BackOff", f'Back-off pulling image "{image}"')
        self._event("Warning", "Failed", "Error: ImagePullBackOff")
        return False

    # --- the container --------------------------------------------------------------

    async def _run_container(self) -> tuple[int, str]:
        port = self._container["ports"][0]["containerPort"]
        variables = {
            item["name"]: item["value"] for item in self._container.get("env", ())
        }
        with self._log.open("w") as log:
            process = await asyncio.create_subprocess_exec(
                *IMAGES[self._container["image"]](self.address, port),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    "PATH": os.defpath,
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    **variables,
                },
                start_new_session=True,
            )
        self._process = self._processes[self._uid] = process
        self._set("Running", state={"running": {"startedAt": timestamp()}})
        probing = asyncio.ensure_future(self._probe(port))
        out_of_memory = asyncio.ensure_future(self._keep_memory_limit(process))
        try:
            code = await process.wait()
        finally:
            probing.cancel()
            out_of_memory.cancel()
            await asyncio.gather(probing, out_of_memory, return_exceptions=True)
        if not out_of_memory.cancelled():
            return _OOM_EXIT, "OOMKilled"
        return (128 - code if code < 0 else code), "Error" if code else "Completed"

    async def _keep_memory_limit(self, process: asyncio.subprocess.Process) -> None:
        limit = self._container.get("resources", {}).get("limits", {}).get("memory")
        while limit is None or _resident_bytes(process.pid) <= _bytes(limit):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)  # of its memory a process tells nobody
        self._kill()

    async def _probe(self, port: int) -> None:
        async with httpx2.AsyncClient(
            base_url=f"http://{self.address}:{port}", trust_env=False
        ) as http:
            await self._probe_until(http, self._container["startupProbe"], wanted=True)
            ready = self._container["readinessProbe"]
            for wanted in itertools.cycle((True, False)):
                await self._probe_until(http, ready, wanted=wanted)
                self._set("Running", ready=wanted)

    async def _probe_until(
        self, http: httpx2.AsyncClient, probe: JsonObject, *, wanted: bool
    ) -> None:
        threshold = 1 if wanted else probe["failureThreshold"]
        streak = 0
        while streak < threshold:
            try:
                answer = await http.get(
                    probe["httpGet"]["path"], timeout=probe["timeoutSeconds"]
                )
                passed = answer.is_success
            except httpx2.HTTPError:
                passed = False
            streak = streak + 1 if passed is wanted else 0
            await asyncio.sleep(probe["periodSeconds"] * PROBE_SPEED)

    async def _back_off(self) -> None:
        where = f"{self._key.name}_{self._key.namespace}({self._uid})"
        name = self._container["name"]
        waiting = {
            "reason": "CrashLoopBackOff",
            "message": f"back-off 10s restarting failed container={name} pod={where}",
        }
        self._set("Running", state={"waiting": waiting})
        text = f"Back-off restarting failed container {name} in pod {where}"
        self._event("Warning", "BackOff", text)
        await asyncio.sleep(CRASH_BACK_OFF_S)

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    # --- what the API server is told ------------------------------------------------

    def _set(
        self,
        phase: str,
        *,
        conditions: list[JsonObject] | None = None,
        state: JsonObject | None = None,
        ready: bool = False,
    ) -> None:
        pod = copy.deepcopy(self._store.objects.get(self._key))
        if pod is None:
            return
        status = pod["status"]
        others = [c for c in status.get("conditions", ()) if c["type"] != "Ready"]
        readiness = {"type": "Ready", "status": str(ready)}
        status |= {"phase": phase, "podIP": self.address}
        status["conditions"] = [*(conditions or others), readiness]
        if "running" in status.get("containerStatuses", [{}])[0].get("state", {}):
            state = state or status["containerStatuses"][0]["state"]
        if state is not None:
            own = {
                "name": self._container["name"],
                "image": self._container["image"],
                "imageID": "",
                "ready": ready,
                "restartCount": self._restarts,
                "state": state,
                "lastState": self._last_state,
            }
            status["containerStatuses"] = [own]
        self._store.update(pod)

    def _event(self, kind: str, reason: str, message: str) -> None:
        pod = self._store.objects.get(self._key)
        if pod is not None:
            self._store.record_event(pod, kind, reason, message)


def _resident_bytes(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _bytes(amount: str) -> int:
    found = re.fullmatch(r"(\d+)(Ki|Mi|Gi|Ti|)", amount)
    assert found, amount
    return int(found[1]) * _UNITS[found[2]]
