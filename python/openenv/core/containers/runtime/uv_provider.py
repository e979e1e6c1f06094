"""An environment in its own project, run by uv (upstream: …/runtime/uv_provider.py)."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from openenv.core.containers.runtime._checked import checked_path, checked_text
from openenv.core.containers.runtime._child import Child
from openenv.core.containers.runtime._git_clone import Clone, source_of
from openenv.core.containers.runtime._server_process import (
    CONTEXT_TIMEOUT_S,
    ServerProcess,
)
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["UVProvider"]

_NAME: Final = "UVProvider"
# uvicorn says so on its log's level «info», with the port that it was given.
_TOLD_BY_UVICORN: Final = re.compile(r"Uvicorn running on http://(\S+:\d+)")
# Run by the project's own Python; an application that cannot be imported ends it.
_SERVE: Final = """
import socket, sys, uvicorn
word, app, host, port = sys.argv[1:]
config = uvicorn.Config(app, log_level="info")
config.load()
listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((host, int(port)))
shown = f"[{host}]" if ":" in host else host
print(f"{word} http://{shown}:{listener.getsockname()[1]}", flush=True)
uvicorn.Server(config).run(sockets=[listener])
"""


class UVProvider(ServerProcess):
    """Run an environment with ``uv run`` and the packages of its own project.

    Args:
        project_path: A folder with a ``pyproject.toml``, or ``git+`` and the URL of a
            repository, which is cloned at every start, such as
            ``git+https://huggingface.co/spaces/org/name``. As with pip, the URL may
            end in ``@`` and a branch, tag or commit, then ``#subdirectory=`` and the
            project's folder in the repository.
        app: The application as uvicorn takes it, importable in that folder.
        host: Address to listen on.
        reload: Whether uvicorn watches the sources.
        env_vars: Added to this process's environment.
        context_timeout_s: Seconds that cloning, installing, start and readiness may
            take together.

    Raises:
        ProviderError: uv is not installed.
        ValueError: The URL names a revision or a folder that cannot be.
    """

    def __init__(
        self,
        *,
        project_path: str,
        app: str = "server.app:app",
        host: str = "0.0.0.0",  # noqa: S104 - upstream's default
        reload: bool = False,
        env_vars: Mapping[str, str] | None = None,
        context_timeout_s: float = CONTEXT_TIMEOUT_S,
    ) -> None:
        super().__init__(host, env_vars, context_timeout_s)
        project_path = checked_path("project_path", project_path)
        self._source = source_of(project_path)
        self.project_path: str = (
            str(Path(project_path).absolute()) if self._source is None else project_path
        )
        self.app: str = checked_text("app", app)
        self.reload = reload
        self._clone: Clone | None = None
        _require("uv", "install it from https://docs.astral.sh/uv")

    @override
    def _launch(
        self, port: int, env_vars: Mapping[str, str], workers: int = 1, **kwargs: Any
    ) -> Child:
        if kwargs:
            message = f"unsupported arguments for {_NAME}: {', '.join(kwargs)}"
            raise ValueError(message)
        folder = self.project_path
        if self._source is not None:
            _require("git", f"it is needed to clone {self._source.url}")
            self._clone = Clone()
            folder = self._clone.fetch(self._source, self._deadline, self._interrupted)
        # Not uvicorn's script: Python has the current folder on its path.
        command = ["uv", "run", "--isolated", "--project", folder, "--", "python"]
        name = f"uv run {self.app}"
        if workers == 1 and not self.reload:
            command += ["-c", _SERVE, self._word, self.app, self.host, str(port)]
            return Child(name, command, env_vars, folder, self._told())
        command += ["-m", "uvicorn", self.app, "--host", self.host]
        command += ["--port", str(port), "--workers", str(workers)]
        command += ["--log-level", "info", *(["--reload"] if self.reload else [])]
        return Child(name, command, env_vars, folder, _TOLD_BY_UVICORN)

    @override
    def stop(self) -> None:
        """Stop the server and its children, and remove the clone; as above."""
        if self._exit_hook.is_another_process:
            return
        try:
            super().stop()
        finally:
            if self._clone is not None:
                self._clone.remove()
                self._clone = None


def _require(program: str, advice: str) -> None:
    if shutil.which(program) is None:
        message = f"`{program}` executable not found; {advice}"
        raise ProviderError(message, _NAME)
