"""What providers that run a server as a child process have in common."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import re
import secrets
import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from typing_extensions import override

from openenv.core._client.settings import checked_wait_s
from openenv.core.containers.runtime._checked import (
    checked_env_vars,
    checked_port,
    checked_text,
)
from openenv.core.containers.runtime._child import STOP_TIMEOUT_S, Child
from openenv.core.containers.runtime._exit_hook import ExitHook
from openenv.core.containers.runtime._one_start import (
    AlreadyRunning,
    one_at_a_time,
)
from openenv.core.containers.runtime._readiness import wait_until_ready
from openenv.core.containers.runtime.providers import RuntimeProvider
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTEXT_TIMEOUT_S: Final = 60.0


class ServerProcess(RuntimeProvider):
    """Start a child that prints its address, and stop it whole.

    Start and readiness share one budget of ``context_timeout_s`` seconds.
    """

    host: str
    env_vars: Mapping[str, str] | None
    context_timeout_s: float

    def __init__(
        self,
        host: str,
        env_vars: Mapping[str, str] | None,
        context_timeout_s: float,
    ) -> None:
        self.host = checked_text("host", host)
        self.env_vars = None if env_vars is None else checked_env_vars(env_vars)
        self.context_timeout_s = checked_wait_s("context_timeout_s", context_timeout_s)
        self._process: Child | None = None
        self._base_url: str | None = None
        self._deadline = 0.0
        self._start_lock = threading.Lock()
        self._interrupted = threading.Event()
        self._exit_hook = ExitHook()
        self._word = ""

    def _told(self) -> re.Pattern[str]:
        """Return what matches the line by which the child tells its address."""
        return re.compile(rf"{self._word} http://(\S+:\d+)")

    @abstractmethod
    def _launch(self, port: int, env_vars: Mapping[str, str], **kwargs: Any) -> Child:
        """Start the child on a port, 0 for a free one."""

    @override
    @one_at_a_time
    def start(
        self,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Start the server and return its base URL, with the port it told.

        Args:
            port: The port to listen on; None takes a free one.
            env_vars: Added to this process's environment and the constructor's.
            **kwargs: The provider's own options.

        Raises:
            ProviderError: It ended early, or runs already.
            TimeoutError: It did not listen in time.
            TypeError: An option is of another kind than it takes.
            ValueError: An option is unknown or cannot be.
        """
        if self._process is not None:
            message = f"{type(self).__name__} is already running"  # upstream's words
            raise AlreadyRunning(message, type(self).__name__)
        variables = {**(self.env_vars or {}), **checked_env_vars(env_vars)}
        checked_port("port", port, 0)
        self._interrupted.clear()
        # The environment may print addresses, too, those of servers of its own.
        self._word = secrets.token_hex(8)
        self._deadline = time.monotonic() + self.context_timeout_s
        self._exit_hook.set(self.stop)
        try:
            self._process = self._launch(port or 0, variables, **kwargs)
            told = self._process.wait_for_address(self._deadline, self._interrupted)
        except BaseException:
            self.stop()
            raise
        self._base_url = f"http://{self._reachable(told)}"
        return self._base_url

    @override
    def wait_for_ready(self, timeout_s: float | None = None) -> None:
        """Wait until ``/health`` answers 200 and ``/ws`` opens.

        Args:
            timeout_s: Seconds to wait at most; None takes what `start` has left of
                ``context_timeout_s``.

        Raises:
            ProviderError: It was not started, or ended; shows its last 50 lines.
            TimeoutError: It was not ready in time; shows them as well.
        """
        process = self._process
        if process is None:
            message = f"{type(self).__name__} has not been started"
            raise ProviderError(message, type(self).__name__)
        if timeout_s is None:
            timeout_s = max(self._deadline - time.monotonic(), 0.0)
        try:
            wait_until_ready(
                self.base_url, timeout_s, self._refuse_ended, self._interrupted
            )
        except TimeoutError as exc:
            message = (
                f"Server did not become ready within {timeout_s:.1f} seconds: {exc}"
                f"{process.last_lines()}"
            )
            raise TimeoutError(message) from None

    @override
    def stop(self) -> None:
        """Stop the server and its children; SIGKILL follows after 10 s.

        In a forked child it leaves alone what its parent has started.
        """
        if self._exit_hook.is_another_process:
            return
        process = self._process
        if process is not None:
            process.stop(STOP_TIMEOUT_S)
        self._process = self._base_url = None
        self._interrupted.clear()
        self._exit_hook.clear()

    def interrupt(self) -> None:
        """Let a start or a wait in another thread end soon, with an error.

        Where nothing runs and nothing is being started, it does nothing.
        """
        self._interrupted.set()

    @property
    def base_url(self) -> str:
        """The server's base URL.

        Raises:
            ProviderError: It has not been started.
        """
        if self._base_url is None:
            message = f"{type(self).__name__} has not been started"
            raise ProviderError(message, type(self).__name__)
        return self._base_url

    def _reachable(self, told: str) -> str:
        # A server on every interface is asked at this machine's own address.
        parts = urlsplit(f"//{told}")
        host = parts.hostname or ""
        if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared
            host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104
        return f"[{host}]:{parts.port}" if ":" in host else f"{host}:{parts.port}"

    def _refuse_ended(self) -> None:
        if self._process is None:
            raise ProviderError("the server was stopped", type(self).__name__)
        self._process.refuse_ended()
