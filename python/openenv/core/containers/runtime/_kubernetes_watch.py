"""What the cluster does with a workload: its Pods, and what its Job could not create.

Lists and then watches, and lists again whenever the watch breaks. Runs on a loop; what
it has seen may be read from any thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import httpx2
from lightkube.resources.core_v1 import Event, Pod

from openenv.core.containers.runtime._kubernetes_api import is_refusal
from openenv.core.containers.runtime._kubernetes_objects import INSTANCE_LABEL
from openenv.core.containers.runtime._kubernetes_troubles import (
    UNSCHEDULABLE,
    Trouble,
    is_ready,
    trouble_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightkube import AsyncClient

    from openenv.core.containers.runtime._kubernetes_objects import Workload

_RETRY_S: Final = 1.0
# The server ends a watch after this; a connection that died silently is noticed then.
_WATCH_S: Final = 300
_REFUSED: Final = "FailedCreate"

_log = logging.getLogger(__name__)


class WorkloadWatch:
    """Know the Pods of one workload as the API server does.

    Args:
        client: To list and watch with.
        workload: Whose Pods.

    `answered` is set once every first request has been answered or has failed. To
    cancel earlier would leave a socket open: the client does not close what is in the
    middle of a TLS handshake.
    """

    def __init__(self, client: AsyncClient, workload: Workload) -> None:
        self._client = client
        self._workload = workload
        self._pods: dict[str, Pod] = {}
        self._refusal: str | None = None
        self._unschedulable_since: dict[str, float] = {}
        self._unanswered = {Pod, Event}
        self.answered = threading.Event()

    async def run(self) -> None:
        """Watch until cancelled.

        Raises:
            ExceptionGroup: Of `httpx2.HTTPStatusError`: listing is forbidden.
        """
        labels = {INSTANCE_LABEL: self._workload.name}
        fields = {"involvedObject.name": self._workload.name}
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(Pod, {"labels": labels}, self._see_pod))
            group.create_task(self._follow(Event, {"fields": fields}, self._see_event))

    def ready_pods(self) -> list[str]:
        """Return the names of the Pods that take sessions, sorted."""
        return sorted(name for name, pod in self._seen() if is_ready(pod))

    def trouble(self) -> Trouble | None:
        """Return why the workload will not serve; None while it may."""
        for _, pod in self._seen():
            trouble = trouble_of(pod)
            if trouble is not None and self._is_out_of_patience(trouble):
                return trouble
        if self._refusal is not None and not self._pods:
            return Trouble(_REFUSED, self._refusal)
        return None

    def _seen(self) -> list[tuple[str, Pod]]:
        return list(self._pods.items())

    def _is_out_of_patience(self, trouble: Trouble) -> bool:
        if trouble.reason != UNSCHEDULABLE:
            return True
        since = self._unschedulable_since.setdefault(
            trouble.pod or "", time.monotonic()
        )
        patience_s = self._workload.options.schedule_timeout_s
        return time.monotonic() - since >= patience_s

    async def _follow(
        self,
        resource: Any,  # noqa: ANN401 - a class of lightkube's resources
        selector: dict[str, Any],
        see: Callable[[str, Any], None],
    ) -> None:
        where = {"namespace": self._workload.namespace, **selector}
        while True:
            try:
                listed = self._client.list(resource, **where)
                items = [item async for item in listed]
                self._note_answer(resource)
                see("LISTED", items)
                watch = self._client.watch(
                    resource,
                    resource_version=listed.resourceVersion,
                    server_timeout=_WATCH_S,
                    **where,
                )
                async for kind, item in watch:
                    see(kind, item)
            except httpx2.HTTPError as exc:
                self._note_answer(resource)
                if is_refusal(exc):
                    raise
                _log.debug("the watch of %s broke: %s", self._workload.name, exc)
                await asyncio.sleep(_RETRY_S)

    def _note_answer(self, resource: Any) -> None:  # noqa: ANN401 - as above
        self._unanswered.discard(resource)
        if not self._unanswered:
            self.answered.set()

    def _see_pod(self, kind: str, seen: Any) -> None:  # noqa: ANN401 - a Pod or a list
        if kind == "LISTED":
            self._pods = {pod.metadata.name: pod for pod in seen}
        elif kind == "DELETED":
            self._pods.pop(seen.metadata.name, None)
        else:
            self._pods[seen.metadata.name] = seen

    def _see_event(self, kind: str, seen: Any) -> None:  # noqa: ANN401 - as above
        for event in seen if kind == "LISTED" else [seen]:
            if event.reason == _REFUSED:
                self._refusal = event.message or _REFUSED
