"""One container on the local Docker engine (upstream: …/runtime/providers.py).

::

    none ──create──> created ──start──> running ──stop, kill──> ended ──remove──> none

A container is known by the name that was made for it before the engine was asked, so
whatever interrupts a start, there is something to remove. It is removed when a start
fails, by `stop_container`, and when the interpreter exits; after ``kill -9`` of this
process by whoever removes strays.
"""

# ruff: noqa: ANN401 - upstream's signatures and the SDK's objects

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from typing_extensions import override

from openenv.core.containers.runtime._checked import (
    checked_env_vars,
    checked_port,
    checked_stop_timeout_s,
)
from openenv.core.containers.runtime._container_spec import (
    ContainerOptions,
    container_name,
    container_port,
    options_of,
    publish_address,
)
from openenv.core.containers.runtime._docker_engine import (
    connect,
    gone_is_fine,
    image_of,
    last_lines,
    listening_ports,
    published_host,
    publishing_address,
    pull,
    told,
)
from openenv.core.containers.runtime._exit_hook import EngineExitHook
from openenv.core.containers.runtime._one_start import (
    AlreadyRunning,
    one_at_a_time,
)
from openenv.core.containers.runtime._output import SHOWN_LINES
from openenv.core.containers.runtime._readiness import wait_until_ready
from openenv.core.containers.runtime.providers import (
    READY_TIMEOUT_S,
    ContainerProvider,
)
from openenv.core.containers.runtime.strays import remove_strays_of
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LocalDockerProvider"]

STOP_TIMEOUT_S: Final = 10.0  # what `docker stop` gives, and upstream with it
_NAME: Final = "LocalDockerProvider"
_CONSTRUCTORS: Final = frozenset({"on_progress", "pull", "stop_timeout_s"})
_ENDED: Final = frozenset({"exited", "dead", "removing"})

_log = logging.getLogger(__name__)


class LocalDockerProvider(ContainerProvider):
    """Run an environment's image on the Docker engine of this machine.

    Args:
        image: The image to run where `start_container` is given none.
        env_vars: Environment variables where `start_container` is given none.
        pull: ``missing`` pulls an image that the engine does not have, ``always``
            asks the registry first, ``never`` does not ask it.
        stop_timeout_s: Seconds that a server has to end after SIGTERM, a day at most.
        on_progress: Called with a line of text as an image is being pulled; by
            default the lines are logged.
        **options: See `ContainerOptions`; `start_container` overrides them.

    Raises:
        ProviderError: No engine answers.
        TypeError: An option is of another kind than it takes.
        ValueError: An unknown option or pull policy, or a value that cannot be.

    Example:
        >>> def serve() -> str:
        ...     provider = LocalDockerProvider("echo-env:latest", memory="512m")
        ...     url = provider.start_container()
        ...     provider.wait_for_ready(url)
        ...     return url
    """

    def __init__(
        self,
        image: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        *,
        pull: Literal["missing", "always", "never"] = "missing",
        stop_timeout_s: float = STOP_TIMEOUT_S,
        on_progress: Callable[[str], None] | None = None,
        **options: Any,
    ) -> None:
        if pull not in {"missing", "always", "never"}:
            message = f"pull must be missing, always or never, not {pull!r}"
            raise ValueError(message)
        options_of(_NAME, options)
        self.image = image
        self.env_vars: Mapping[str, str] | None = (
            None if env_vars is None else checked_env_vars(env_vars)
        )
        self.pull = pull
        self.stop_timeout_s: float = checked_stop_timeout_s(stop_timeout_s)
        self._on_progress = on_progress or _log.info
        self._options = options
        self._container_id: str | None = None
        self._container_name: str | None = None
        self._start_lock = threading.Lock()
        self._interrupted = threading.Event()
        self._exit_hook = EngineExitHook()
        self._client = connect(_NAME)

    @override
    @one_at_a_time
    def start_container(
        self,
        image: str | None = None,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Start a container and return the base URL of its server.

        Strays of this machine are removed first.

        Args:
            image: Such as ``echo-env:latest``; None takes the constructor's.
            port: The port at this machine; None lets the engine choose.
            env_vars: Environment variables; None takes the constructor's.
            **kwargs: See `ContainerOptions`.

        Raises:
            ProviderError: It could not be started; nothing of it is left.
            ValueError: No image, or an unknown option.
        """
        if self._container_name is not None:
            message = f"container {self._container_name} runs already; stop it first"
            raise AlreadyRunning(message, _NAME)
        self._interrupted.clear()
        image = image or self.image
        if not image:
            message = f"no image: give one to {_NAME} or to start_container"
            raise ValueError(message)
        options = options_of(_NAME, self._given(kwargs))
        port = checked_port("port", port, 0)
        variables = checked_env_vars(self.env_vars if env_vars is None else env_vars)
        remove_strays_of(self._client)
        with told(_NAME, f"cannot start a container of {image}"):
            found = self._image(image)
            inside = options.container_port or container_port(
                self._client, found, _NAME
            )
            self._container_name = self._generate_container_name(image)
            self._exit_hook.set(self._discard)
            try:
                container = self._create(found, port, inside, variables, options)
                self._container_id = container.id
                container.start()
                return self._url(container, inside, options)
            except BaseException:
                self._discard()
                raise

    @override
    def wait_for_ready(self, base_url: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until ``/health`` answers 200 and ``/ws`` opens.

        Args:
            base_url: What `start_container` returned.
            timeout_s: Seconds to wait at most.

        Raises:
            ProviderError: The container ended; shows its last 50 lines.
            TimeoutError: It was not ready in time; shows them as well.
        """
        try:
            wait_until_ready(base_url, timeout_s, self._refuse_ended, self._interrupted)
        except TimeoutError as exc:
            # upstream: the sentence up to the colon
            message = (
                f"Container at {base_url} did not become ready within {timeout_s:g}s: "
                f"{exc}{self._where_it_listens()}{self._last_lines()}"
            )
            raise TimeoutError(message) from None

    @override
    def stop_container(self) -> None:
        """Stop the container, kill it if it does not end in time, and remove it.

        Does nothing where there is none, and in a forked child where it is the
        parent's. After an error it can be called again.

        Raises:
            ProviderError: The engine does not answer or refuses.
        """
        if self._exit_hook.is_another_process:
            return
        with told(_NAME, f"cannot stop container {self._container_name}"):
            try:
                self._end()
            finally:
                self._remove()

    def interrupt(self) -> None:
        """Let a start or a wait in another thread end soon, with an error.

        Where nothing runs and nothing is being started, it does nothing.
        """
        self._interrupted.set()

    @override
    def close(self) -> None:
        """Stop the container, if one runs."""
        self.stop_container()

    # --- starting ---------------------------------------------------------------

    def _given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if constructors := sorted(_CONSTRUCTORS & {*options}):
            message = (
                f"{', '.join(constructors)} belong to the constructor: give "
                f"provider={_NAME}({constructors[0]}=…)"
            )
            raise ValueError(message)
        return {**self._options, **options}

    def _image(self, name: str) -> Any:
        found = None if self.pull == "always" else image_of(self._client, name)
        if found is not None:
            return found
        if self.pull == "never":
            message = f"the engine has no image {name}, and pull is 'never'"
            raise ProviderError(message, _NAME)
        pull(self._client, name, self._on_progress, self._interrupted)
        return self._client.images.get(name)

    def _generate_container_name(self, image: str) -> str:
        return container_name(image)

    def _create(
        self,
        image: Any,
        port: int | None,
        inside: int,
        env_vars: Mapping[str, str],
        options: ContainerOptions,
    ) -> Any:
        arguments = options.arguments()
        if options.network != "host":
            host = (
                publishing_address(self._client)
                if options.publish_host is None
                else publish_address(options.publish_host)
            )
            arguments["ports"] = {f"{inside}/tcp": (host, port)}
        return self._client.containers.create(
            image.id,
            name=self._container_name,
            environment=dict(env_vars),
            **arguments,
        )

    def _url(self, container: Any, inside: int, options: ContainerOptions) -> str:
        host = published_host(self._client)
        if options.network == "host":
            return f"http://{host}:{inside}"
        container.reload()
        bound = container.ports.get(f"{inside}/tcp")
        if not bound:
            self._refuse_ended()
            message = f"the engine published no port for {container.name}"
            raise ProviderError(message, _NAME)
        return f"http://{host}:{bound[0]['HostPort']}"

    # --- waiting ----------------------------------------------------------------

    def _refuse_ended(self) -> None:
        name = self._running()
        with told(_NAME, f"container {name} is lost"):
            state = self._client.api.inspect_container(name)["State"]
        if state["Status"] in _ENDED:
            killed = " (out of memory)" if state.get("OOMKilled") else ""
            message = (
                f"container {name} exited with code {state['ExitCode']}{killed}"
                f"{self._last_lines()}"
            )
            raise ProviderError(message, _NAME)

    def _running(self) -> str:
        if self._container_name is None:
            raise ProviderError("the container was stopped", _NAME)
        return self._container_name

    def _last_lines(self) -> str:
        name = self._running()
        return last_lines(lambda: self._client.api.logs(name, tail=SHOWN_LINES))

    def _where_it_listens(self) -> str:
        with told(_NAME, "cannot look into the container"):
            ports = listening_ports(self._client, self._running())
        listed = ", ".join(map(str, ports))
        return f"; inside, it listens on {listed} (container_port=…)" if ports else ""

    # --- ending -----------------------------------------------------------------

    def _end(self) -> None:
        if self._container_name is not None:
            with gone_is_fine():
                self._client.api.stop(
                    self._container_name, timeout=round(self.stop_timeout_s)
                )

    def _remove(self) -> None:
        if self._container_name is not None:
            with gone_is_fine():
                self._client.api.remove_container(
                    self._container_name, v=True, force=True
                )
        self._container_name = self._container_id = None
        self._interrupted.clear()
        self._exit_hook.clear()
        self._client.close()  # its connections; the next call opens new ones

    def _discard(self) -> None:
        # Another error is on its way to the caller; what is left here is a stray.
        with suppress(ProviderError), told(_NAME, "cannot remove the container"):
            self._remove()
