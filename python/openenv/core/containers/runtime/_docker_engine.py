"""The Docker engine as providers see it; the only module that imports its SDK."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import closing, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from openenv.core.containers.runtime._output import shown
from openenv.errors import ProviderError

try:
    import docker
    import docker.constants
    import docker.errors
    import docker.types
    import docker.utils
    import requests
    from docker.context import ContextAPI
except ModuleNotFoundError as error:
    message = f"Docker providers need {error.name!r}: pip install 'openenv[docker]'"
    raise ModuleNotFoundError(message, name=error.name) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docker import DockerClient

_PING_TIMEOUT_S: Final = 10
_LOCAL: Final = "127.0.0.1"
_CONFLICT: Final = 409
_STATE_COLUMN: Final = 3  # of /proc/net/tcp (proc(5))
_LISTEN: Final = "0A"
_PULL_INTERVAL_S: Final = 0.1


def connect(provider: str) -> DockerClient:
    """Return a client of the engine that the ``docker`` command would talk to.

    That is ``DOCKER_HOST`` where set, else the current context's. It has 10 s to
    answer, fewer than its later work may take.

    Args:
        provider: Who asks, for the error.

    Raises:
        ProviderError: No engine answers.
    """
    try:
        client = _client()
        try:
            client.ping()
            client.api.timeout = docker.constants.DEFAULT_TIMEOUT_SECONDS
        finally:
            client.close()  # its connections; the next call opens new ones
    except (docker.errors.DockerException, requests.RequestException) as exc:
        # upstream: its users match on the first sentence
        message = (
            "Docker is not available. Please install Docker Desktop or Docker Engine. "
            f"The engine did not answer: {exc}"
        )
        raise ProviderError(message, provider) from exc
    return client


def _client() -> DockerClient:
    context = None if os.getenv("DOCKER_HOST") else ContextAPI.get_current_context()
    if context is None or context.name == "default":
        return docker.from_env(timeout=_PING_TIMEOUT_S)
    return docker.DockerClient(
        base_url=context.Host, tls=context.TLSConfig, timeout=_PING_TIMEOUT_S
    )


@contextmanager
def told(provider: str, what: str) -> Iterator[None]:
    """Turn the SDK's errors into `ProviderError`.

    Args:
        provider: The provider's class name.
        what: What failed, such as ``cannot start container x``.
    """
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as exc:
        reason = getattr(exc, "explanation", None) or exc
        message = f"{what}: {reason}"
        raise ProviderError(message, provider) from exc


@contextmanager
def gone_is_fine() -> Iterator[None]:
    """Pass over what is not there, or is being removed by somebody else."""
    try:
        yield
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as exc:
        if exc.status_code != _CONFLICT or "already in progress" not in str(exc):
            raise


def image_of(client: DockerClient, name: str) -> Any | None:  # noqa: ANN401 - the SDK's
    """Return an image that the engine has, else None."""
    try:
        return client.images.get(name)
    except docker.errors.ImageNotFound:
        return None


def is_manager(client: DockerClient) -> bool:
    """Tell whether the engine manages a swarm."""
    swarm = client.info().get("Swarm", {})
    return bool(swarm.get("ControlAvailable"))


def published_host(client: DockerClient) -> str:
    """Return the address at which this machine reaches ports of the engine's."""
    where = urlsplit(os.getenv("DOCKER_HOST") or client.api.base_url)
    if where.scheme in {"unix", "npipe", "http+docker"} or not where.hostname:
        return _LOCAL
    return where.hostname


def pull(
    client: DockerClient,
    image: str,
    on_progress: Callable[[str], None],
    interrupted: threading.Event,
) -> None:
    """Pull an image, telling how far it is.

    Args:
        client: The engine.
        image: A reference; without tag and digest, its ``latest``.
        on_progress: Called with lines such as ``a1b2: Downloading 1MB/2MB``.
        interrupted: Ends the pull when set.

    Raises:
        ProviderError: The registry refused, or it was interrupted.
    """
    for line in _pulling(client, image, interrupted):
        if "error" in line:
            message = f"cannot pull {image}: {line['error']}"
            raise ProviderError(message)
        layer, status = line.get("id"), line.get("status", "")
        state = f"{status} {line.get('progress', '')}".strip()
        on_progress(f"{layer}: {state}" if layer else state)


def _pulling(
    client: DockerClient, image: str, interrupted: threading.Event
) -> Iterator[dict[str, Any]]:
    """Yield what the engine tells of a pull, read on a thread that may be left."""
    repository, tag = docker.utils.parse_repository_tag(image)
    queue: SimpleQueue[dict[str, Any] | Exception | None] = SimpleQueue()
    left = threading.Event()

    def read() -> None:
        try:
            lines = client.api.pull(
                repository, tag or "latest", stream=True, decode=True
            )
            with closing(lines):
                for line in lines:
                    queue.put(line)
                    if left.is_set():
                        break
        except (docker.errors.DockerException, requests.RequestException) as exc:
            queue.put(exc)
        else:
            queue.put(None)

    threading.Thread(target=read, name="openenv-pull", daemon=True).start()
    try:
        while not interrupted.is_set():
            with suppress(Empty):
                told_line = queue.get(timeout=_PULL_INTERVAL_S)
                if told_line is None:
                    return
                if isinstance(told_line, Exception):
                    raise told_line
                yield told_line
    finally:
        left.set()
    message = f"the pull of {image} was interrupted"
    raise ProviderError(message)


def last_lines(read: Callable[[], bytes]) -> str:
    """Return the end of an error's sentence that shows the last output.

    Also where that cannot be read: the error is about something else.
    """
    try:
        output = read()
    except docker.errors.NotFound:
        return "; it is gone, and its output with it"
    except (docker.errors.DockerException, requests.RequestException) as exc:
        return f"; its output cannot be read: {exc}"
    return shown(output.decode(errors="replace").rstrip())


def device_request(gpus: int | str) -> list[Any]:
    """Return what asks for some or ``all`` GPUs, as ``docker run --gpus`` does."""
    count = -1 if gpus == "all" else int(gpus)
    return [docker.types.DeviceRequest(count=count, capabilities=[["gpu"]])]


def refuse_memory(name: str, value: object) -> None:
    """Refuse what is no size of memory.

    Raises:
        TypeError: It is neither text nor a whole number; the caller's fault.
        ValueError: It is no such text, or less than a byte; likewise.
    """
    what = "a size such as '512m', or bytes"
    if not isinstance(value, str | int) or isinstance(value, bool):
        message = f"{name} must be {what}, not {type(value).__name__}"
        raise TypeError(message)
    try:
        size_bytes = float(docker.utils.parse_bytes(value))
    except docker.errors.DockerException:
        size_bytes = 0
    if size_bytes < 1:
        message = f"{name} must be {what}, not {value!r}"
        raise ValueError(message)


def publishing_address(client: DockerClient) -> str:
    """Return the IP address of the engine's at which this machine reaches it.

    Not a name: the engine would publish on all of its addresses.

    Raises:
        ProviderError: The engine's host has a name that cannot be resolved.
    """
    host = published_host(client)
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as exc:
        message = f"cannot resolve the engine's host {host}: {exc}; give publish_host="
        raise ProviderError(message) from exc


def service_arguments(
    replicas: int,
    published: dict[str, Any],
    cpu_limit: float | str | None,
    memory_limit: int | str | None,
) -> dict[str, Any]:
    """Return the arguments of the SDK's ``services.create`` that have types of its own.

    Args:
        replicas: How many containers.
        published: The port, in the words of the engine's API.
        cpu_limit: CPUs of each, such as 0.5.
        memory_limit: Memory of each, such as ``512m``, or bytes.
    """
    nano_cpus = None if cpu_limit is None else round(float(cpu_limit) * 1e9)
    memory = (
        None if memory_limit is None else int(docker.utils.parse_bytes(memory_limit))
    )
    return {
        "mode": docker.types.ServiceMode("replicated", replicas=replicas),
        "endpoint_spec": docker.types.EndpointSpec(ports=[published]),
        "resources": docker.types.Resources(cpu_limit=nano_cpus, mem_limit=memory),
    }


def listening_ports(client: DockerClient, container: str) -> list[int]:
    """Return the TCP ports that processes in a running container listen on.

    Empty where the image has no ``cat``, or the container has ended.
    """
    command = ["cat", "/proc/net/tcp", "/proc/net/tcp6"]
    try:
        process = client.api.exec_create(container, command, stderr=False)
        output: bytes = client.api.exec_start(process["Id"])
    except docker.errors.APIError:
        return []
    rows = [line.split() for line in output.decode(errors="replace").splitlines()]
    return sorted(
        {
            int(row[1].rpartition(":")[2], 16)
            for row in rows
            if len(row) > _STATE_COLUMN and row[_STATE_COLUMN] == _LISTEN
        }
    )
