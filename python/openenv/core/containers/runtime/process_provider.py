"""An environment of this machine, served by a child process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from openenv.core.containers.runtime._checked import checked_path
from openenv.core.containers.runtime._child import Child
from openenv.core.containers.runtime._server_process import (
    CONTEXT_TIMEOUT_S,
    ServerProcess,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = ["ProcessProvider"]

_WORD_VARIABLE: Final = "OPENENV_SERVE_WORD"  # of `openenv serve`


class ProcessProvider(ServerProcess):
    """Run ``openenv serve`` as a child, with this process's Python and packages.

    Args:
        environment: A folder with ``openenv.yaml``, or the name of an environment, as
            ``openenv serve`` takes it.
        host: Address to listen on.
        env_vars: Added to this process's environment.
        context_timeout_s: Seconds that start and readiness may take together.

    Example:
        >>> from openenv.core.generic_client import GenericEnvClient
        >>> def episode() -> None:
        ...     provider = ProcessProvider("envs/grid_world_env")
        ...     with GenericEnvClient(provider=provider).sync() as env:
        ...         env.reset(seed=7)
    """

    def __init__(
        self,
        environment: str | PathLike[str] = ".",
        *,
        host: str = "127.0.0.1",
        env_vars: Mapping[str, str] | None = None,
        context_timeout_s: float = CONTEXT_TIMEOUT_S,
    ) -> None:
        super().__init__(host, env_vars, context_timeout_s)
        self.environment: str = checked_path("environment", environment)

    @override
    def _launch(self, port: int, env_vars: Mapping[str, str], **kwargs: Any) -> Child:
        if kwargs:
            message = f"unsupported arguments for ProcessProvider: {', '.join(kwargs)}"
            raise ValueError(message)
        command = [sys.executable, "-m", "openenv.cli", "serve", self.environment]
        command += ["--host", self.host, "--port", str(port)]
        name = f"the server of {self.environment}"
        variables = {**env_vars, _WORD_VARIABLE: self._word}
        return Child(name, command, variables, told=self._told())
