"""Clients that start what they connect to: an image, a Space, a repository.

The keyword arguments that the client's constructor knows are the client's; all others
are the provider's.
"""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from openenv.core._client.handle import Handle
from openenv.core._client.provider import Launch, refuse_without
from openenv.core._client.settings import checked_wait_s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openenv.core.containers.runtime import ContainerProvider, RuntimeProvider

_ClientT = TypeVar("_ClientT")

READY_TIMEOUT_S: Final = 30.0
_REGISTRY: Final = "registry.hf.space"
_SPACES: Final = "git+https://huggingface.co/spaces"
_START_ARGUMENTS: Final = ("port", "env_vars", "workers")
_NOT_IN_HOSTS: Final = re.compile(r"[^a-z0-9]")


class Factories:
    """Add `from_docker_image` and `from_env` to a client."""

    @classmethod
    def from_docker_image(
        cls,
        image: str,
        provider: ContainerProvider | None = None,
        *,
        wait_timeout: float | None = READY_TIMEOUT_S,
        **kwargs: Any,
    ) -> Handle[Self]:
        """Start a container of an image and connect to it.

        Nothing starts until the handle is awaited, entered or asked for ``sync()``.
        Whatever fails from then on, the container is removed; so it is at ``close``.

        Args:
            image: Such as ``echo-env:latest``.
            provider: What runs it; by default a new `LocalDockerProvider`.
            wait_timeout: Seconds from the start until the server must be ready; None
                takes the provider's own default.
            **kwargs: The client's options and the provider's ``start_container``'s.

        Raises:
            ProviderError: The container could not be started, or ended.
            TimeoutError: It was not ready in time.
            ConnectFailed: See `EnvClient.connect`.
            TypeError: ``wait_timeout`` is no number; `ValueError` if it is negative or
                NaN. At once, and nothing starts.
        """
        waiting = _waiting(wait_timeout)
        client_options, start_options = _split(cls, kwargs)

        def launch() -> Launch:
            return _container(provider, image, start_options, waiting)

        return _handle(cls, launch, client_options)

    @classmethod
    def from_env(
        cls,
        repo_id: str,
        *,
        use_docker: bool = True,
        provider: ContainerProvider | RuntimeProvider | None = None,
        wait_timeout: float | None = None,
        **provider_kwargs: Any,
    ) -> Handle[Self]:
        """Start an environment from the Hugging Face Hub and connect to it.

        Args:
            repo_id: The Space, such as ``openenv/echo_env``.
            use_docker: Whether to run the Space's image (``tag`` names another than
                ``latest``), or its sources with uv.
            provider: What runs it: by default a new `LocalDockerProvider`, or
                `UVProvider`.
            wait_timeout: Seconds until the server must be ready; None takes the
                provider's own default: 30 for a container, ``context_timeout_s`` of
                `UVProvider`.
            **provider_kwargs: The client's options and the provider's; for uv,
                ``project_path`` is used in place of the Space.

        Raises:
            ProviderError: As `from_docker_image`, and so are the others.
            ValueError: Options for a provider that was given ready-made.
        """
        waiting = _waiting(wait_timeout)
        client_options, options = _split(cls, provider_kwargs)

        def launch() -> Launch:
            if use_docker:
                tag = options.pop("tag", "latest")
                image = f"{_REGISTRY}/{subdomain(repo_id)}:{tag}"
                given = cast("ContainerProvider | None", provider)
                return _container(given, image, options, waiting)
            given_runtime = cast("RuntimeProvider | None", provider)
            return _runtime(given_runtime, repo_id, options, waiting)

        return _handle(cls, launch, client_options)


def _container(
    provider: ContainerProvider | None,
    image: str,
    options: dict[str, Any],
    waiting: Mapping[str, float],
) -> Launch:
    def make() -> ContainerProvider:
        # Here, so that a client needs no Docker SDK.
        from openenv.core.containers.runtime import (  # noqa: PLC0415
            LocalDockerProvider,
        )

        return LocalDockerProvider()

    def start(container: ContainerProvider) -> str:
        url = str(container.start_container(image, **options))
        container.wait_for_ready(url, **waiting)
        return url

    return Launch(provider, start, make, refuse_without("start_container"))


def _runtime(
    provider: RuntimeProvider | None,
    repo_id: str,
    options: dict[str, Any],
    waiting: Mapping[str, float],
) -> Launch:
    arguments = {
        name: options.pop(name) for name in _START_ARGUMENTS if name in options
    }
    if provider is not None and options:
        # upstream: core/env_client.py words it so
        raise ValueError(
            "provider_kwargs cannot be used when supplying a provider instance"
        )

    def make() -> RuntimeProvider:
        from openenv.core.containers.runtime import UVProvider  # noqa: PLC0415

        return UVProvider(**{"project_path": f"{_SPACES}/{repo_id}", **options})

    def start(runtime: RuntimeProvider) -> str:
        url = str(runtime.start(**arguments))
        runtime.wait_for_ready(**waiting)
        return url

    return Launch(provider, start, make, refuse_without("start"))


def _waiting(wait_timeout: object) -> dict[str, float]:
    """Return the arguments of ``wait_for_ready`` that a caller's wait makes."""
    if wait_timeout is None:
        return {}
    return {"timeout_s": checked_wait_s("wait_timeout", wait_timeout)}


def _handle(
    cls: Callable[..., _ClientT],
    launch: Callable[[], Launch],
    client_options: dict[str, Any],
) -> Handle[_ClientT]:
    return Handle(lambda: cls(base_url=None, provider=launch(), **client_options))


def _split(
    cls: type, arguments: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into those of the client's constructor and all others."""
    known = {
        name
        for each in cls.__mro__
        if "__init__" in vars(each)
        for name in inspect.signature(vars(each)["__init__"]).parameters
    }
    client_options = {name: value for name, value in arguments.items() if name in known}
    others = {name: value for name, value in arguments.items() if name not in known}
    return client_options, others


def subdomain(repo_id: str) -> str:
    """Return what stands for a Space in the names of its hosts and images."""
    return _NOT_IN_HOSTS.sub("-", repo_id.lower())
