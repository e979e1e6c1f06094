"""The fake cluster as a whole, on a loop and a thread of its own."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import uvicorn
import yaml
from tests.conftest import ROOT
from tests.integration.kubernetes.cluster.api import TOKEN, ApiServer, Rule
from tests.integration.kubernetes.cluster.controllers import Controllers
from tests.integration.kubernetes.cluster.kubelet import Kubelet
from tests.integration.kubernetes.cluster.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.kubernetes.cluster.store import JsonObject

NAMESPACE = "rl"
_START_TIMEOUT_S = 10.0
_LEAVE_S = 1

_ResultT = TypeVar("_ResultT")


def documented_rules() -> set[Rule]:
    """Return the rules of the Role that docs/kubernetes.md tells users to create."""
    text = (ROOT / "docs/kubernetes.md").read_text()
    documents = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    objects = [item for text in documents for item in yaml.safe_load_all(text)]
    (role,) = (item for item in objects if item["kind"] == "Role")
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def make_certificate(folder: Path) -> Path:
    """Make a certificate for 127.0.0.1 that signs itself; its key lies beside it."""
    path = folder / "ca.crt"
    options = {
        "-newkey": "ec",
        "-pkeyopt": "ec_paramgen_curve:prime256v1",
        "-days": "1",
        "-subj": "/CN=kubernetes",
        "-addext": "subjectAltName=IP:127.0.0.1",
        "-out": str(path),
        "-keyout": str(path.with_suffix(".key")),
    }
    command = ["openssl", "req", "-x509", "-nodes"]
    command += [word for option in options.items() for word in option]
    subprocess.run(command, check=True, capture_output=True)
    return path


class FakeCluster:
    """A context manager; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        self._folder = tempfile.TemporaryDirectory(prefix="openenv-cluster-")
        self._certificate = make_certificate(Path(self._folder.name))
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),))
        self.loop: asyncio.AbstractEventLoop
        self.store: Store
        self.api: ApiServer
        self.kubelet: Kubelet
        self._server: uvicorn.Server

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_START_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._begin_to_leave)
        self._thread.join()
        self._folder.cleanup()

    def call(self, function: Callable[[], _ResultT]) -> _ResultT:
        """Run a function on the cluster's loop."""

        async def run() -> _ResultT:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result()

    def wait_until(self, condition: Callable[[], Any], timeout_s: float = 10.0) -> None:
        """Wait until a condition on the objects holds, without polling."""

        async def wait() -> None:
            while not condition():
                await self.store.changed.wait()

        try:
            waiting = asyncio.wait_for(wait(), timeout_s)
            asyncio.run_coroutine_threadsafe(waiting, self.loop).result()
        except TimeoutError:
            message = f"still waiting; there are {self.names()}"
            raise AssertionError(message) from None

    def names(self) -> list[str]:
        """Return what there is, such as `Job/x`; events go by themselves."""
        return self.call(
            lambda: [
                f"{k.kind}/{k.name}" for k in self.store.objects if k.kind != "Event"
            ]
        )

    def find(self, kind: str) -> JsonObject:
        """Return the one object of a kind."""
        (found,) = self.call(lambda: self.store.of_kind(kind))
        return found

    def wait_until_ready(self) -> None:
        """Wait until the kubelet calls all Pods ready."""
        self.wait_until(
            lambda: (pods := self.store.of_kind("Pod")) and all(map(_is_ready, pods))
        )

    def wait_until_empty(self) -> None:
        self.wait_until(lambda: not {k.kind for k in self.store.objects} - {"Event"})

    def clear(self) -> None:
        """Remove everything that is left, and its events."""

        def remove_all() -> None:
            for item in list(self.store.objects.values()):
                if item["kind"] == "Pod":
                    self.store.mark_for_deletion(item)
                else:
                    self.store.remove(item)

        self.call(remove_all)
        self.wait_until(lambda: not self.store.objects)

    def living_processes(self) -> list[int]:
        processes = self.call(lambda: list(self.kubelet.processes.values()))
        return [process.pid for process in processes if process.returncode is None]

    def write_kubeconfig(self, path: Path) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "fake",
                    "cluster": {
                        "server": self.url,
                        "certificate-authority": str(self._certificate),
                    },
                }
            ],
            "users": [{"name": "trainer", "user": {"token": TOKEN}}],
            "contexts": [
                {
                    "name": "test",
                    "context": {
                        "cluster": "fake",
                        "user": "trainer",
                        "namespace": NAMESPACE,
                    },
                }
            ],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.store = Store()
        self.api = ApiServer(self.store, documented_rules())
        self.kubelet = Kubelet(self.store)
        config = uvicorn.Config(
            self.api.app,
            ws="wsproto",
            ssl_certfile=self._certificate,
            ssl_keyfile=self._certificate.with_suffix(".key"),
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=_LEAVE_S,
        )
        self._server = uvicorn.Server(config)
        controllers = asyncio.ensure_future(Controllers(self.store).run())
        kubelet = asyncio.ensure_future(self.kubelet.run())
        self._ready.set()
        try:
            await self._server.serve([self._socket])
        finally:
            controllers.cancel()
            kubelet.cancel()
            ends = await asyncio.gather(controllers, kubelet, return_exceptions=True)
        for end in ends:
            assert isinstance(end, asyncio.CancelledError), end

    def _begin_to_leave(self) -> None:
        self.api.is_closing = True
        self._server.should_exit = True
        self.store.forget_history()


def _is_ready(pod: JsonObject) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(
        item["type"] == "Ready" and item["status"] == "True" for item in conditions
    )
