"""`KubernetesProvider`: an image as Pods of a cluster (extra ``kubernetes``)."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from openenv.core._client.settings import checked_wait_s
from openenv.core.containers.runtime._checked import HIGHEST_PORT, checked_whole
from openenv.core.containers.runtime._exit_hook import ExitHook
from openenv.core.containers.runtime._kubernetes_names import checked_pod_variables
from openenv.core.containers.runtime._kubernetes_options import NAME, options_of
from openenv.core.containers.runtime._one_start import (
    AlreadyRunning,
    one_at_a_time,
)
from openenv.core.containers.runtime._readiness import wait_until_ready
from openenv.core.containers.runtime.providers import ContainerProvider
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openenv.core.containers.runtime._kubernetes_cluster import Cluster
    from openenv.core.containers.runtime._kubernetes_objects import Workload
    from openenv.core.containers.runtime._kubernetes_run import Run

__all__ = ["KubernetesProvider"]

DEFAULT_PORT: Final = 8000
# A node may have to pull the image first.
READY_TIMEOUT_S: Final = 300.0
_POLL_INTERVAL_S: Final = 0.05


class KubernetesProvider(ContainerProvider):
    """Run an environment's image in a Kubernetes cluster, as a Job and a Service.

    The Job's deadline is moved on while this process lives. Afterwards, however it
    ended, the cluster removes everything within `ttl_s` and a minute. What the account
    must be allowed to do: docs/kubernetes.md.

    Args:
        image: The image to run where `start_container` is given none.
        env_vars: Environment variables where `start_container` is given none.
        port: The port that the server listens on, where `start_container` is given
            none. 8000 is upstream's; images for Hugging Face listen on 7860.
        kubeconfig: A file; None takes the Pod's service account, then
            ``KUBECONFIG``, then ``~/.kube/config``.
        context: One of the file's; None takes its current one.
        **options: See `KubernetesOptions`; `start_container` overrides them.

    Raises:
        ProviderError: The extra is not installed, or no cluster is configured.
        TypeError: An option is of another kind than it takes.
        ValueError: An unknown option, or one that cannot be.

    Example:
        >>> def serve() -> str:
        ...     provider = KubernetesProvider("registry/echo-env:1", replicas=4)
        ...     url = provider.start_container()
        ...     provider.wait_for_ready(url)
        ...     return url
    """

    def __init__(
        self,
        image: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        *,
        port: int = DEFAULT_PORT,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        **options: Any,
    ) -> None:
        options_of(options)
        self.image = image
        self.env_vars: Mapping[str, str] | None = (
            None if env_vars is None else checked_pod_variables(env_vars)
        )
        self.port: int = checked_whole("port", port, 1, HIGHEST_PORT)
        self._options = options
        self._cluster = _cluster(kubeconfig, context)
        self._run: Run | None = None
        self._start_lock = threading.Lock()
        self._interrupted = threading.Event()
        self._exit_hook = ExitHook()

    @override
    @one_at_a_time
    def start_container(
        self,
        image: str | None = None,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Create the objects and return the base URL of the server.

        Args:
            image: Such as ``registry/echo-env:1``; None takes the constructor's.
            port: The port that the server listens on; None takes the constructor's.
            env_vars: Environment variables; None takes the constructor's.
            **kwargs: See `KubernetesOptions`.

        Raises:
            ProviderError: They could not be created; nothing of them is left.
            ValueError: No image, or an unknown option.
        """
        if self._run is not None:
            message = f"Job {self._run.workload.name} runs already; stop it first"
            raise AlreadyRunning(message, NAME)
        self._interrupted.clear()
        self._run = self._cluster.run(self._workload(image, port, env_vars, kwargs))
        self._exit_hook.set(self._discard)
        try:
            return self._run.create()
        except BaseException:
            self._discard()
            raise

    @override
    def wait_for_ready(self, base_url: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until all Pods are ready and the server answers at its URL.

        Where that fails, the objects are deleted before the error is raised.

        Args:
            base_url: What `start_container` returned.
            timeout_s: Seconds to wait at most.

        Raises:
            ProviderError: A Pod will not serve. Names the cluster's reason, shows its
                events and the last 50 lines of the container that failed.
            TimeoutError: They were not ready in time.
        """
        deadline = time.monotonic() + checked_wait_s("timeout_s", timeout_s)
        try:
            self._wait(base_url, deadline)
        except TimeoutError as exc:
            self._discard()
            message = (
                f"Container at {base_url} did not become ready within {timeout_s:g}s: "
                f"{exc}"
            )
            raise TimeoutError(message) from None
        except BaseException:
            self._discard()
            raise

    @override
    def stop_container(self) -> None:
        """Delete the objects and wait until they are gone.

        Does nothing where there are none, and in a forked child where they are the
        parent's. After an error it can be called again; the lease is renewed no longer
        in any case.

        Raises:
            ProviderError: The cluster refuses or does not answer.
        """
        if self._exit_hook.is_another_process:
            return
        self._interrupted.clear()
        if self._run is not None:
            self._run.remove()
            self._forget()

    def interrupt(self) -> None:
        """Let a wait in another thread end soon, with an error.

        Where nothing runs and nothing is being started, it does nothing.
        """
        self._interrupted.set()

    @override
    def close(self) -> None:
        """Stop what runs."""
        self.stop_container()

    def render(
        self,
        image: str | None = None,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Return as YAML what `start_container` would create; takes its arguments."""
        return self._workload(image, port, env_vars, kwargs).yaml()

    def _workload(
        self,
        image: str | None,
        port: int | None,
        env_vars: Mapping[str, str] | None,
        options: Mapping[str, Any],
    ) -> Workload:
        image = image or self.image
        if not image:
            message = f"no image: give one to {NAME} or to start_container"
            raise ValueError(message)
        return self._cluster.workload(
            image,
            checked_whole("port", self.port if port is None else port, 1, HIGHEST_PORT),
            checked_pod_variables(self.env_vars if env_vars is None else env_vars),
            options_of({**self._options, **options}),
        )

    def _wait(self, base_url: str, deadline: float) -> None:
        while (waited_for := self._unready()) is not None:
            if time.monotonic() >= deadline:
                raise TimeoutError(waited_for)
            if self._interrupted.wait(_POLL_INTERVAL_S):
                raise ProviderError("the start was interrupted", NAME)
        left_s = max(deadline - time.monotonic(), 0.0)
        wait_until_ready(base_url, left_s, self._check, self._interrupted)

    def _unready(self) -> str | None:
        run = self._started()
        run.check()
        return run.unready()

    def _check(self) -> None:
        self._started().check()

    def _started(self) -> Run:
        if self._run is None:
            raise ProviderError("the container was stopped", NAME)
        return self._run

    def _forget(self) -> None:
        if self._run is not None:
            self._run.close()
        self._run = None
        self._interrupted.clear()
        self._exit_hook.clear()

    def _discard(self) -> None:
        # Another error is on its way to the caller; what is left here has its deadline.
        with suppress(ProviderError):
            self.stop_container()


def _cluster(kubeconfig: str | Path | None, context: str | None) -> Cluster:
    try:
        from openenv.core.containers.runtime._kubernetes_cluster import (  # noqa: PLC0415 - only this provider needs the extra
            Cluster,
        )
    except ModuleNotFoundError as exc:
        message = (
            f"{exc}; Kubernetes needs the extra: pip install 'openenv[kubernetes]'"
        )
        raise ProviderError(message, NAME) from exc
    return Cluster(kubeconfig, context)
