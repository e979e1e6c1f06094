"""The Docker engine as providers see it; the only module that imports its SDK."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from openenv.errors import ProviderError

try:
    import docker
    import docker.errors
    import requests
    from docker.context import ContextAPI
except ModuleNotFoundError as error:
    message = f"Docker providers need {error.name!r}: pip install 'openenv[docker]'"
    raise ModuleNotFoundError(message, name=error.name) from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient

_LOCAL: Final = "127.0.0.1"


def connect(provider: str) -> DockerClient:
    """Return a client of the engine that the ``docker`` command would talk to.

    That is ``DOCKER_HOST`` where set, else the current context's.

    Args:
        provider: Who asks, for the error.

    Raises:
        ProviderError: No engine answers.
    """
    try:
        client = _client()
        client.ping()
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
        return docker.from_env()
    return docker.DockerClient(base_url=context.Host, tls=context.TLSConfig or False)


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


_CONFLICT: Final = 409
