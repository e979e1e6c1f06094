"""What a provider is (upstream: core/containers/runtime/providers.py)."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Self

from openenv.core._faces import lazy_getattr

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from openenv.core.containers.runtime.docker_swarm_provider import (
        DockerSwarmProvider,
    )
    from openenv.core.containers.runtime.kubernetes_provider import KubernetesProvider
    from openenv.core.containers.runtime.local_docker_provider import (
        LocalDockerProvider,
    )

__all__ = [
    "ContainerProvider",
    "DockerSwarmProvider",
    "KubernetesProvider",
    "LocalDockerProvider",
    "RuntimeProvider",
]

READY_TIMEOUT_S: Final = 30.0


class ContainerProvider(ABC):
    """Run one container at a time and say where its server is.

    A provider may also have a method ``interrupt()``: callable from any thread, it
    lets a start or a wait in another thread end soon with an error, and does nothing
    where there is none. A client whose connecting is cancelled calls it until the start
    has ended.
    """

    @abstractmethod
    def start_container(
        self,
        image: str,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Start a container and return the base URL of its server.

        Args:
            image: What to run, in the provider's own terms.
            port: The port to reach it at; None lets the provider choose.
            env_vars: Environment variables of the container.
            **kwargs: The provider's own options.

        Raises:
            ProviderError: It could not be started; nothing of it is left.
        """

    @abstractmethod
    def stop_container(self) -> None:
        """Stop and remove the container; does nothing when there is none."""

    @abstractmethod
    def wait_for_ready(self, base_url: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until the server takes sessions.

        Args:
            base_url: What `start_container` returned.
            timeout_s: Seconds to wait at most.

        Raises:
            ProviderError: The container ended.
            TimeoutError: It was not ready in time.
        """

    def close(self) -> None:  # noqa: B027 - a hook with a default
        """Release what the provider holds besides its container; by default nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class RuntimeProvider(ABC):
    """Run one server as a process and say where it is; ``interrupt()`` as above."""

    @abstractmethod
    def start(
        self,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Start the server and return its base URL.

        Args:
            port: The port to listen on; None takes a free one.
            env_vars: Environment variables of the process, added to this one's.
            **kwargs: The provider's own options.

        Raises:
            ProviderError: It could not be started; nothing of it is left.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop the server; does nothing when there is none."""

    @abstractmethod
    def wait_for_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until the server takes sessions; errors as of a container."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


# Upstream has all container providers in this module.
_HERE = "openenv.core.containers.runtime"
_MODULES: dict[str, tuple[str, ...]] = {
    f"{_HERE}.kubernetes_provider": ("KubernetesProvider",),
    f"{_HERE}.local_docker_provider": ("LocalDockerProvider",),
    f"{_HERE}.docker_swarm_provider": ("DockerSwarmProvider",),
}

if not TYPE_CHECKING:  # a checker shall find a wrong name
    __getattr__ = lazy_getattr(__name__, _MODULES, globals())
