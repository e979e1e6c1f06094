"""Replicas of one image as a Docker Swarm service (upstream: …/runtime/providers.py).

The swarm's own balancer hands each connection, and so each session, to one replica.
"""

# ruff: noqa: ANN401 - upstream's signatures and the SDK's objects

from __future__ import annotations

import shlex
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from typing_extensions import override

from openenv.core.containers.runtime._checked import (
    checked_command,
    checked_env_vars,
    checked_port,
    checked_text_mapping,
    checked_texts,
)
from openenv.core.containers.runtime._container_spec import (
    DEFAULT_PORT,
    container_name,
    container_port,
)
from openenv.core.containers.runtime._docker_engine import (
    connect,
    gone_is_fine,
    image_of,
    is_manager,
    last_lines,
    published_host,
    refuse_memory,
    service_arguments,
    told,
)
from openenv.core.containers.runtime._exit_hook import EngineExitHook
from openenv.core.containers.runtime._one_start import (
    AlreadyRunning,
    one_at_a_time,
)
from openenv.core.containers.runtime._output import SHOWN_LINES
from openenv.core.containers.runtime._owner import own_labels
from openenv.core.containers.runtime._readiness import (
    POLL_INTERVAL_S,
    wait_until_ready,
)
from openenv.core.containers.runtime.providers import (
    READY_TIMEOUT_S,
    ContainerProvider,
)
from openenv.core.containers.runtime.strays import remove_strays_of
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["DockerSwarmProvider"]

_NAME: Final = "DockerSwarmProvider"
_REPLICAS: Final = 2  # upstream's default
_PORT_TIMEOUT_S: Final = 30.0  # the containers have to start for it
_REMOVE_TIMEOUT_S: Final = 15.0  # the engine gives containers 10 s after SIGTERM
_SERVICE_LABEL: Final = "com.docker.swarm.service.name"
_FAILED: Final = frozenset({"complete", "failed", "rejected"})
_LOOPBACK: Final = "127.0.0.1"


class DockerSwarmProvider(ContainerProvider):
    """Run replicas of an environment's image as a service of the local swarm.

    Args:
        auto_init_swarm: Whether to make this engine a swarm of its own, reachable on
            this machine only, where it is in none. It stays one.
        overlay_network: A network for the service; made where it is missing, and kept.
        publish_mode: ``ingress`` is the swarm's balancer, which needs IPVS in the
            kernel. ``host`` needs none: the one replica publishes its own port.

    Raises:
        ProviderError: No engine answers, or it is no manager of a swarm.
    """

    def __init__(
        self,
        *,
        auto_init_swarm: bool = True,
        overlay_network: str | None = None,
        publish_mode: Literal["host", "ingress"] = "ingress",
    ) -> None:
        self._service_name: str | None = None
        self._service_id: str | None = None
        self._published_port: int | None = None
        self._overlay_network = overlay_network
        self._auto_init_swarm = auto_init_swarm
        self._publish_mode = publish_mode
        self._start_lock = threading.Lock()
        self._interrupted = threading.Event()
        self._exit_hook = EngineExitHook()
        self._client = connect(_NAME)
        self._ensure_swarm()
        self._ensure_network()

    @override
    @one_at_a_time
    def start_container(
        self,
        image: str,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Create the service and return the base URL of its balancer.

        Strays of this machine are removed first.

        Args:
            image: Such as ``echo-env:latest``.
            port: The port at this machine; None lets the swarm choose.
            env_vars: Environment variables of the containers.
            **kwargs: ``replicas`` (2; 1 with ``host``), ``cpu_limit``,
                ``memory_limit``, ``constraints``, ``labels``, ``command``,
                ``container_port``.

        Raises:
            ProviderError: It could not be created; nothing of it is left.
            ValueError: An unknown option.
        """
        if self._service_name is not None:
            message = f"service {self._service_name} runs already; stop it first"
            raise AlreadyRunning(message, _NAME)
        self._interrupted.clear()
        arguments = self._arguments(image, port, env_vars, kwargs)
        remove_strays_of(self._client)
        self._service_name = container_name(image, infix="-swarm")
        self._exit_hook.set(self._discard)
        try:
            with told(_NAME, f"cannot create a service of {image}"):
                service = self._client.services.create(  # type: ignore[no-untyped-call]
                    image, name=self._service_name, **arguments
                )
                self._service_id = service.id
                self._published_port = self._port_of(service)
        except BaseException:
            self._discard()
            raise
        return f"http://{published_host(self._client)}:{self._published_port}"

    @override
    def wait_for_ready(self, base_url: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until one replica takes sessions; others may still be starting.

        Args:
            base_url: What `start_container` returned.
            timeout_s: Seconds to wait at most.

        Raises:
            ProviderError: A replica ended; shows the service's last 50 lines.
            TimeoutError: None was ready in time; shows them as well.
        """
        try:
            wait_until_ready(
                base_url, timeout_s, self._refuse_failed, self._interrupted
            )
        except TimeoutError as exc:
            # upstream: the sentence up to the colon
            message = (
                f"Swarm service at {base_url} did not become ready within "
                f"{timeout_s:g}s: {exc}{self._last_lines()}"
            )
            raise TimeoutError(message) from None

    @override
    def stop_container(self) -> None:
        """Remove the service and wait until its containers are gone.

        Does nothing where there is none, and in a forked child where it is the
        parent's. After an error it can be called again.

        Raises:
            ProviderError: The engine does not answer or refuses.
        """
        if self._exit_hook.is_another_process:
            return
        with told(_NAME, f"cannot remove service {self._service_name}"):
            self._remove(_REMOVE_TIMEOUT_S)

    def interrupt(self) -> None:
        """Let a start or a wait in another thread end soon, with an error.

        Where nothing runs and nothing is being started, it does nothing.
        """
        self._interrupted.set()

    @override
    def close(self) -> None:
        """Remove the service, if one runs."""
        self.stop_container()

    # --- the swarm ----------------------------------------------------------------

    def _ensure_swarm(self) -> None:
        with told(_NAME, "Failed to initialize Docker Swarm"):  # upstream's words
            if is_manager(self._client):
                return
            if not self._auto_init_swarm:
                message = (
                    "Docker Swarm is not active. Enable Swarm manually or pass "
                    "auto_init_swarm=True."
                )
                raise ProviderError(message, _NAME)
            self._client.swarm.init(
                advertise_addr=_LOOPBACK, listen_addr=f"{_LOOPBACK}:2377"
            )

    def _ensure_network(self) -> None:
        network = self._overlay_network
        if network is None:
            return
        with told(_NAME, f"cannot create network {network}"):
            if not self._client.networks.list(names=[network]):
                self._client.networks.create(network, driver="overlay", attachable=True)

    # --- starting -----------------------------------------------------------------

    def _arguments(
        self,
        image: str,
        port: int | None,
        env_vars: Mapping[str, str] | None,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        left = dict(options)
        command: Sequence[str] | str | None = left.pop("command", None)
        checked_command(command)
        if isinstance(command, str):
            command = shlex.split(command)
        labels = checked_text_mapping("labels", left.pop("labels", None) or {})
        constraints = checked_texts("constraints", left.pop("constraints", None) or ())
        variables = checked_env_vars(env_vars)
        default = _REPLICAS if self._publish_mode == "ingress" else 1
        inside = checked_port("container_port", left.pop("container_port", None))
        replicas, cpus, memory = (
            max(1, int(left.pop("replicas", default))),
            left.pop("cpu_limit", None),
            left.pop("memory_limit", None),
        )
        if memory is not None:
            refuse_memory("memory_limit", memory)
        if left:  # upstream's words
            message = f"Unsupported kwargs for {_NAME}: {set(left)}"
            raise ValueError(message)
        published = {
            "Protocol": "tcp",
            "TargetPort": inside or self._container_port(image),
            "PublishMode": self._publish_mode,
            **({} if port is None else {"PublishedPort": port}),
        }
        typed = service_arguments(replicas, published, cpus, memory)
        return {
            **typed,
            # `args`, not `command`, which would take the place of the entrypoint.
            "args": command,
            "constraints": list(constraints),
            "env": [f"{key}={value}" for key, value in variables.items()],
            "init": True,
            "labels": {**labels, **own_labels()},
            "networks": [self._overlay_network] if self._overlay_network else None,
        }

    def _container_port(self, image: str) -> int:
        with told(_NAME, f"cannot look into {image}"):
            found = image_of(self._client, image)
            return (
                DEFAULT_PORT
                if found is None
                else container_port(self._client, found, _NAME)
            )

    def _port_of(self, service: Any) -> int:
        deadline = time.monotonic() + _PORT_TIMEOUT_S
        while not (port := self._published(service)):
            self._refuse_failed()
            if time.monotonic() > deadline or self._interrupted.wait(POLL_INTERVAL_S):
                message = f"the swarm gave service {service.name} no port"
                raise ProviderError(message, _NAME)
        return port

    def _published(self, service: Any) -> int | None:
        if self._publish_mode == "ingress":
            service.reload()
            ports = service.attrs["Endpoint"].get("Ports")
        else:
            told_ports = [
                task["Status"].get("PortStatus", {}).get("Ports")
                for task in self._tasks(service.name)
            ]
            ports = next(filter(None, told_ports), None)
        return int(ports[0]["PublishedPort"]) if ports else None

    # --- waiting ------------------------------------------------------------------

    def _refuse_failed(self) -> None:
        name = self._service_name
        if name is None:
            raise ProviderError("the service was stopped", _NAME)
        for task in self._tasks(name):
            status = task["Status"]
            if status["State"] in _FAILED:
                reason = status.get("Err") or status.get("Message")
                message = f"a replica of {name} ended: {reason}{self._last_lines()}"
                raise ProviderError(message, _NAME)

    def _tasks(self, name: str) -> list[Any]:
        with told(_NAME, f"service {name} is lost"):
            found: list[Any] = self._client.api.tasks({"service": name})  # type: ignore[no-untyped-call]
        return found

    def _last_lines(self) -> str:
        def read() -> bytes:
            service = self._client.services.get(self._service_name)  # type: ignore[no-untyped-call]
            return b"".join(service.logs(stdout=True, stderr=True, tail=SHOWN_LINES))

        return last_lines(read)

    # --- ending -------------------------------------------------------------------

    def _remove(self, timeout_s: float) -> None:
        name = self._service_name
        if name is not None:
            with gone_is_fine():
                self._client.api.remove_service(name)  # type: ignore[no-untyped-call]
            self._remove_containers(name, timeout_s)
        self._service_name = self._service_id = self._published_port = None
        self._interrupted.clear()
        self._exit_hook.clear()
        self._client.close()  # its connections; the next call opens new ones

    def _remove_containers(self, name: str, timeout_s: float) -> None:
        # The engine stops them by and by, on its own.
        filters = {"label": f"{_SERVICE_LABEL}={name}"}
        deadline = time.monotonic() + timeout_s
        while left := self._client.api.containers(all=True, filters=filters):
            if time.monotonic() > deadline:
                for each in left:
                    with gone_is_fine():
                        self._client.api.remove_container(
                            each["Id"], v=True, force=True
                        )
            time.sleep(POLL_INTERVAL_S)

    def _discard(self) -> None:
        # Another error is on its way to the caller; what is left here is a stray.
        with suppress(ProviderError), told(_NAME, "cannot remove the service"):
            self._remove(0.0)
