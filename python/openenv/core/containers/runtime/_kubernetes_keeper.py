"""What this process does for a workload while it lives, on its background loop.

It watches the Pods, leads connections to them, and moves the Job's deadline on. The
deadline is the lease: three times in `ttl_s` it is set to `ttl_s` from then, and when
nobody does that any more, the Job controller ends the Pods.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import threading
import time
from typing import TYPE_CHECKING, Final

import httpx2
from lightkube import AsyncClient
from lightkube.resources.batch_v1 import Job

from openenv.core._client.io_thread import io_loop
from openenv.core.containers.runtime._kubernetes_api import GONE, status_code
from openenv.core.containers.runtime._kubernetes_forward import PortForward
from openenv.core.containers.runtime._kubernetes_options import NAME
from openenv.core.containers.runtime._kubernetes_watch import WorkloadWatch
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

    from openenv.core.containers.runtime._kubernetes_objects import Workload

_RENEWALS_A_TTL: Final = 3
_OPEN_TIMEOUT_S: Final = 10.0
_CLOSE_TIMEOUT_S: Final = 5.0

_log = logging.getLogger(__name__)


class Keeper:
    """Watch, reach and keep one workload, from `open` to `close`.

    Args:
        config: The cluster, and the user to work as.
        workload: What to keep.
        forward: Whether to open a local port that leads to its Pods.
    """

    def __init__(
        self, config: SingleConfig, workload: Workload, *, forward: bool
    ) -> None:
        self._workload = workload
        self._client = AsyncClient(config, namespace=workload.namespace)
        self.watch = WorkloadWatch(self._client, workload)
        self._forward = (
            PortForward(
                config, workload.namespace, workload.port, self.watch.ready_pods
            )
            if forward
            else None
        )
        self._opened_at = time.monotonic()
        self._running: concurrent.futures.Future[None] | None = None
        self._ended = threading.Event()

    def open(self) -> int | None:
        """Begin; return the local port where there is one."""
        opened: concurrent.futures.Future[int | None] = concurrent.futures.Future()
        self._running = asyncio.run_coroutine_threadsafe(self._run(opened), io_loop())
        return opened.result(_OPEN_TIMEOUT_S)

    def check(self) -> None:
        """Refuse to go on where the workload can be kept no longer.

        Raises:
            ProviderError: The Job is gone, or watching is forbidden.
        """
        if self._running is None or not self._running.done():
            return
        cause = None if self._running.cancelled() else self._running.exception()
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        message = (
            f"cannot follow Job {self._workload.name}: {cause or 'it was stopped'}"
        )
        raise ProviderError(message, NAME) from cause

    def close(self) -> None:
        """End all of it; the Job's deadline stays where it is."""
        if self._running is None or self._running.done():
            return
        self.watch.answered.wait(_CLOSE_TIMEOUT_S)
        if self._running.cancel():
            self._ended.wait(_CLOSE_TIMEOUT_S)

    async def _run(self, opened: concurrent.futures.Future[int | None]) -> None:
        try:
            port = None if self._forward is None else await self._forward.open()
            opened.set_result(port)
            async with asyncio.TaskGroup() as group:
                group.create_task(self.watch.run())
                group.create_task(self._renew())
        except OSError as exc:
            if not opened.done():
                opened.set_exception(exc)
            raise
        finally:
            if self._forward is not None:
                await self._forward.close()
            await self._client.close()
            self._ended.set()

    async def _renew(self) -> None:
        workload = self._workload
        while True:
            await asyncio.sleep(workload.options.ttl_s / _RENEWALS_A_TTL)
            lived_s = time.monotonic() - self._opened_at
            deadline = {
                "activeDeadlineSeconds": math.ceil(lived_s) + workload.options.ttl_s
            }
            try:
                await self._client.patch(
                    Job, workload.name, {"spec": deadline}, namespace=workload.namespace
                )
            except httpx2.HTTPError as exc:
                if status_code(exc) == GONE:
                    _log.error("Job %s has gone without being stopped", workload.name)
                    raise
                _log.warning("cannot renew the lease of %s: %s", workload.name, exc)
