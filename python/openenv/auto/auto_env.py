"""The client of an environment, by name (upstream: auto/auto_env.py)."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from openenv.auto._discovery import find, installed
from openenv.auto._environment_info import key_of
from openenv.auto._hub import ensure_installed, is_hub_name, repo_id, space_url
from openenv.auto._reach import is_available, is_local
from openenv.core._client.factories import READY_TIMEOUT_S
from openenv.core._client.handle import Handle
from openenv.core._client.io_thread import run_in_background
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from openenv.core.containers.runtime import ContainerProvider
    from openenv.core.env_client import EnvClient

    Client = EnvClient[Any, Any, Any]

__all__ = ["AutoEnv"]

_SERVER_TIMEOUT_S: Final = 2.0
_SPACE_TIMEOUT_S: Final = 5.0  # behind the Hub's proxy


class AutoEnv:
    """Make the client of an environment that is known by its name.

    Nothing is made of this class itself. Where a container is started, the call blocks
    until its server is ready: in a running event loop write
    ``await asyncio.to_thread(AutoEnv.from_env, "echo")``. The client that is returned
    is not connected, so it may be used in any loop, or in none. Its ``close`` stops the
    container.
    """

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        # upstream: auto/auto_env.py words it so
        raise TypeError(
            "AutoEnv is a factory class and should not be instantiated directly. "
            "Use AutoEnv.from_hub() or AutoEnv.from_env() instead."
        )

    @classmethod
    def from_env(  # noqa: PLR0913, PLR0917 - upstream's signature, order included
        cls,
        name: str,
        base_url: str | None = None,
        docker_image: str | None = None,
        container_provider: ContainerProvider | None = None,
        wait_timeout: float = READY_TIMEOUT_S,
        env_vars: Mapping[str, str] | None = None,
        trust_remote_code: bool = False,
        skip_install: bool = False,
        **kwargs: Any,
    ) -> EnvClient[Any, Any, Any]:
        """Find an environment, start it where it does not run, and give its client.

        ``base_url`` is used where a server answers there. Where none does and the
        address is this machine's, or where there is no address, a container is started.
        For a Space, that is done only if the Space itself does not run.

        Args:
            name: An installed environment (``echo``, ``echo-env`` or ``echo_env``), or
                a Space of the Hugging Face Hub (``owner/name``, or its address).
            base_url: Where its server is.
            docker_image: The image to start, instead of the environment's own.
            container_provider: What starts it; by default a new `LocalDockerProvider`.
            wait_timeout: Seconds until a started server must be ready.
            env_vars: The container's environment variables.
            trust_remote_code: Install a Space's package without asking; without it
                there must be a terminal to ask at, or the variable
                ``OPENENV_TRUST_REMOTE_CODE=1``.
            skip_install: Neither install nor import a package: the client is a
                `GenericEnvClient`, whose values are dicts.
            **kwargs: The client's options, and where an image is started its
                provider's.

        Returns:
            A client of the environment's class, not connected.

        Raises:
            ValueError: No such environment, its installation was refused or failed, or
                its client could not be made (then ``__cause__`` says why).
            ImportError: Its package cannot be imported.
            ConnectionError: ``skip_install``, and there is no server at ``base_url``.
        """
        start = _Start(
            docker_image, container_provider, wait_timeout, env_vars, dict(kwargs)
        )
        repo = repo_id(name) if is_hub_name(name) else None
        if skip_install:
            return _generic(name, repo, base_url, start)
        if repo is None:
            info = find(name)
        else:
            info = ensure_installed(repo, trusted=trust_remote_code)
        client_class = info.get_client_class()
        try:
            return start.client(client_class, base_url, repo, info.default_image)
        except Exception as error:
            # upstream: auto/auto_env.py begins so
            message = (
                f"Failed to create environment client for {name!r} "
                f"({client_class.__name__}): {str(error) or type(error).__name__}"
            )
            raise ValueError(message) from error

    @classmethod
    def from_hub(  # noqa: PLR0913, PLR0917 - as `from_env`
        cls,
        name: str,
        base_url: str | None = None,
        docker_image: str | None = None,
        container_provider: ContainerProvider | None = None,
        wait_timeout: float = READY_TIMEOUT_S,
        env_vars: Mapping[str, str] | None = None,
        trust_remote_code: bool = False,
        skip_install: bool = False,
        **kwargs: Any,
    ) -> EnvClient[Any, Any, Any]:
        """Do what `from_env` does, under another name."""
        return cls.from_env(
            name,
            base_url,
            docker_image,
            container_provider,
            wait_timeout,
            env_vars,
            trust_remote_code,
            skip_install,
            **kwargs,
        )

    @classmethod
    def get_env_class(cls, name: str) -> type[EnvClient[Any, Any, Any]]:
        """Import the client's class of an installed environment.

        Raises:
            ValueError: There is no such environment.
            ImportError: Its package cannot be imported.
        """
        return find(name).get_client_class()

    @classmethod
    def get_env_info(cls, name: str) -> dict[str, Any]:
        """Tell what is known of an installed environment, without importing it.

        Raises:
            ValueError: There is no such environment.
        """
        info = installed().get(key_of(name))
        if info is None:
            message = f"Unknown environment: {name}"
            raise ValueError(message)
        return {
            "env_key": info.env_key,
            "name": info.name,
            "package": info.package_name,
            "version": info.version,
            "description": info.description,
            "env_class": info.client_class_name,
            "action_class": info.action_class_name,
            "observation_class": info.observation_class_name,
            "module": info.client_module_path,
            "default_image": info.default_image,
            "spec_version": info.spec_version,
        }

    @classmethod
    def list_environments(cls) -> None:
        """Print the installed environments, a line each."""
        environments = installed()
        if not environments:
            print("No OpenEnv environments found.")  # noqa: T201 - it is to print
        for key, info in environments.items():
            print(f"{key}  {info.version}  {info.description}".rstrip())  # noqa: T201


@dataclass(frozen=True, slots=True)
class _Start:
    """How to come to a server: what the caller of `from_env` said of it."""

    image: str | None
    provider: ContainerProvider | None
    wait_timeout: float
    env_vars: Mapping[str, str] | None
    options: dict[str, Any]

    def client(
        self,
        client_class: type[Client],
        base_url: str | None,
        repo: str | None,
        default_image: str,
    ) -> Client:
        if base_url is None and self.image is None and repo is not None:
            return self.of_space(client_class, repo)
        if base_url is None:
            return self.of_image(client_class, self.image or default_image)
        if self.answers(base_url, _SERVER_TIMEOUT_S):
            return client_class(base_url=base_url, provider=None, **self.options)
        if not is_local(base_url):
            raise _not_available(base_url)
        return self.of_image(client_class, self.image or default_image)

    def of_space(self, client_class: type[Client], repo: str) -> Client:
        """Take the Space if it runs, else its image."""
        url = space_url(repo)
        if self.answers(url, _SPACE_TIMEOUT_S):
            return client_class(base_url=url, provider=None, **self.options)
        return _started(
            client_class.from_env(
                repo,
                use_docker=True,
                provider=self.provider,
                wait_timeout=self.wait_timeout,
                **self.start_options(),
            )
        )

    def of_image(self, client_class: type[Client], image: str) -> Client:
        return _started(
            client_class.from_docker_image(
                image,
                self.provider,
                wait_timeout=self.wait_timeout,
                **self.start_options(),
            )
        )

    def answers(self, url: str, timeout_s: float) -> bool:
        return is_available(url, timeout_s, self.options)

    def start_options(self) -> dict[str, Any]:
        if self.env_vars is None:
            return self.options
        return {"env_vars": dict(self.env_vars), **self.options}


def _generic(
    name: str, repo: str | None, base_url: str | None, start: _Start
) -> Client:
    if base_url is not None:
        if not start.answers(base_url, _SERVER_TIMEOUT_S):
            raise _not_available(base_url)
        return GenericEnvClient(base_url=base_url, **start.options)
    if start.image is not None:
        return start.of_image(GenericEnvClient, start.image)
    if repo is not None:
        return start.of_space(GenericEnvClient, repo)
    # upstream: auto/auto_env.py begins so
    message = (
        f"Cannot use skip_install=True for local environment {name!r} without "
        "providing base_url or docker_image. Say where its server is or which image "
        "to start, or leave skip_install out to use the installed package."
    )
    raise ValueError(message)


def _not_available(url: str) -> ConnectFailed:
    # upstream: auto/auto_env.py begins so
    return ConnectFailed(
        f"Server not available at {url}. It answers neither /health nor / with 200; "
        "start it, or leave base_url out to start a container"
    )


def _started(handle: Coroutine[Any, Any, Client]) -> Client:
    """Block until the server of a client is ready; the client is not connected."""
    if isinstance(handle, Handle):
        return handle.started()
    # Of a class whose own `from_docker_image` is a coroutine function.
    return run_in_background(_disconnected(handle))


async def _disconnected(handle: Coroutine[Any, Any, Client]) -> Client:
    client = await handle
    try:
        await client.disconnect()
    except BaseException:
        await client.close()
        raise
    return client
