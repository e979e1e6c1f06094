"""One start: the objects in the cluster, from the first to the last of them.

They are created and deleted in the caller's thread by a client that needs no loop, so
that they can be deleted while the interpreter exits.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import httpx2
from lightkube import Client
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Service
from lightkube.types import CascadeType

from openenv.core.containers.runtime._kubernetes_api import (
    GONE,
    gone_is_fine,
    status_code,
    told,
)
from openenv.core.containers.runtime._kubernetes_keeper import Keeper
from openenv.core.containers.runtime._kubernetes_objects import START_ANNOTATION
from openenv.core.containers.runtime._kubernetes_options import NAME
from openenv.core.containers.runtime._output import last_of
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

    from openenv.core.containers.runtime._kubernetes_objects import Workload
    from openenv.core.containers.runtime._kubernetes_troubles import Trouble

POLL_INTERVAL_S: Final = 0.1
_SHOWN_EVENTS: Final = 5
# What the cluster's controllers may take beyond the Pods' own grace.
_REMOVAL_S: Final = 30.0
# The status and its event are written side by side; the event may come second.
_EVENT_PATIENCE_S: Final = 1.0


class Run:
    """Hold the objects of one workload.

    Args:
        config: The cluster, and the user to work as.
        workload: What to run; has a `start_id`.
        in_cluster: Whether this process can use the DNS names of Services.
    """

    def __init__(
        self, config: SingleConfig, workload: Workload, *, in_cluster: bool
    ) -> None:
        self.workload = workload
        self._client = Client(config, namespace=workload.namespace)
        access = workload.options.access
        self._keeper = Keeper(
            config,
            workload,
            forward=workload.options.ingress_url is None
            and (access == "port-forward" or (access == "auto" and not in_cluster)),
        )

    def create(self) -> str:
        """Create the objects and return the server's base URL.

        Raises:
            ProviderError: The cluster refuses or does not answer.
        """
        workload = self.workload
        with told(f"cannot create Job {workload.name} in {workload.namespace}"):
            job = self._client.create(workload.job())
        with told(f"cannot create Service {workload.name} in {workload.namespace}"):
            self._client.create(workload.service(job))
        port = self._keeper.open()
        if port is not None:
            return f"http://127.0.0.1:{port}"
        if workload.options.ingress_url is not None:
            return workload.options.ingress_url.format(
                name=workload.name, namespace=workload.namespace
            )
        return f"http://{workload.name}.{workload.namespace}.svc:{workload.port}"

    def unready(self) -> str | None:
        """Return what is missing; None once all Pods take sessions."""
        ready, asked = (
            len(self._keeper.watch.ready_pods()),
            self.workload.options.replicas,
        )
        return None if ready >= asked else f"{ready} of {asked} Pods are ready"

    def check(self) -> None:
        """Refuse to wait for what will not come.

        Raises:
            ProviderError: Names the reason and shows the events and the last output.
        """
        trouble = self._keeper.watch.trouble()
        if trouble is not None:
            raise ProviderError(self._story(trouble), NAME)
        self._keeper.check()

    def remove(self) -> None:
        """Delete the objects and wait until they are gone.

        Raises:
            ProviderError: The cluster refuses, or takes too long.
        """
        # First, so that objects which cannot be deleted end by their deadline.
        self._keeper.close()
        with told(f"cannot delete Job {self.workload.name}"):
            self._delete(Service)
            self._delete(Job)
            self._wait_until_gone()

    def close(self) -> None:
        """Close the connections to the API server."""
        self._client.close()

    # --- what went wrong --------------------------------------------------------

    def _story(self, trouble: Trouble) -> str:
        workload = self.workload
        what = (
            f"Job {workload.name}"
            if trouble.pod is None
            else f"Pod {trouble.pod} of Job {workload.name}"
        )
        lines = [f"{what}: {trouble.reason}: {trouble.message}".removesuffix(": ")]
        events = self._warnings(trouble.pod or workload.name)
        lines += [f"event {event}" for event in events]
        if trouble.output:
            lines += ["its last output:", last_of(trouble.output)]
        return "\n".join(lines)

    def _warnings(self, name: str) -> list[str]:
        deadline = time.monotonic() + _EVENT_PATIENCE_S
        while True:
            with suppress(httpx2.HTTPError):
                events = self._client.list(
                    Event, fields={"involvedObject.name": name, "type": "Warning"}
                )
                told_once = dict.fromkeys(f"{e.reason}: {e.message}" for e in events)
                if told_once:
                    return list(told_once)[-_SHOWN_EVENTS:]
            if time.monotonic() >= deadline:
                return []
            time.sleep(POLL_INTERVAL_S)

    # --- the end ----------------------------------------------------------------

    def _delete(self, resource: Any) -> None:  # noqa: ANN401 - a class of lightkube's
        if self._is_there(resource):
            with gone_is_fine():
                self._client.delete(
                    resource, self.workload.name, cascade=CascadeType.FOREGROUND
                )

    def _wait_until_gone(self) -> None:
        deadline = time.monotonic() + self.workload.options.stop_grace_s + _REMOVAL_S
        while self._is_there(Job):
            if time.monotonic() >= deadline:
                message = f"Job {self.workload.name} is still being deleted"
                raise ProviderError(message, NAME)
            time.sleep(POLL_INTERVAL_S)

    def _is_there(self, resource: Any) -> bool:  # noqa: ANN401 - as above
        # Another start may have an object of this name, given by its caller.
        try:
            found = self._client.get(resource, self.workload.name)
        except httpx2.HTTPError as exc:
            if status_code(exc) == GONE:
                return False
            raise
        annotations = found.metadata.annotations or {}
        return annotations.get(START_ANNOTATION) == self.workload.start_id
