"""An environment in its own project, run by uv (upstream: …/runtime/uv_provider.py)."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from openenv.core.containers.runtime._child import Child
from openenv.core.containers.runtime._server_process import (
    CONTEXT_TIMEOUT_S,
    ServerProcess,
)
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["UVProvider"]

GIT_URL_PREFIX: Final = "git+"
_NAME: Final = "UVProvider"
# uvicorn says so on its log's level «info», with the port that it was given.
_TOLD: Final = re.compile(r"Uvicorn running on http://(\S+:\d+)")


class UVProvider(ServerProcess):
    """Run an environment with ``uv run`` and the packages of its own project.

    Args:
        project_path: A folder with a ``pyproject.toml``, or ``git+`` and the URL of a
            repository, which is cloned at every start, such as
            ``git+https://huggingface.co/spaces/org/name``.
        app: The application as uvicorn takes it, importable in that folder.
        host: Address to listen on.
        reload: Whether uvicorn watches the sources.
        env_vars: Added to this process's environment.
        context_timeout_s: Seconds that cloning, installing, start and readiness may
            take together.

    Raises:
        ProviderError: uv is not installed.
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
        super().__init__()
        is_url = project_path.startswith(GIT_URL_PREFIX)
        self.project_path: str = (
            project_path if is_url else str(Path(project_path).absolute())
        )
        self.app = app
        self.host = host
        self.reload = reload
        self.env_vars = env_vars
        self.context_timeout_s = context_timeout_s
        self._clone_dir: str | None = None
        _require("uv", "install it from https://docs.astral.sh/uv")

    @override
    def _launch(
        self, port: int, env_vars: Mapping[str, str], workers: int = 1, **kwargs: Any
    ) -> Child:
        if kwargs:
            message = f"unsupported arguments for {_NAME}: {', '.join(kwargs)}"
            raise ValueError(message)
        folder = self.project_path
        if folder.startswith(GIT_URL_PREFIX):
            folder = self._clone(folder.removeprefix(GIT_URL_PREFIX))
        # The module, not the script: it has the current folder on its path.
        command = ["uv", "run", "--isolated", "--project", folder, "--"]
        command += ["python", "-m", "uvicorn", self.app, "--host", self.host]
        command += ["--port", str(port), "--workers", str(workers)]
        command += ["--log-level", "info", *(["--reload"] if self.reload else [])]
        return Child(f"uv run {self.app}", command, env_vars, folder, _TOLD)

    @override
    def stop(self) -> None:
        """Stop the server and its children, and remove the clone."""
        try:
            super().stop()
        finally:
            if self._clone_dir is not None:
                shutil.rmtree(self._clone_dir, ignore_errors=True)
                self._clone_dir = None

    def _clone(self, url: str) -> str:
        _require("git", f"it is needed to clone {url}")
        self._clone_dir = tempfile.mkdtemp(prefix="openenv-uv-clone-")
        command = ["git", "clone", "--quiet", "--depth", "1", "--", url]
        # A private repository is an error, not a question to the terminal.
        quiet = {"GIT_TERMINAL_PROMPT": "0"}
        child = Child(f"git clone {url}", [*command, self._clone_dir], quiet)
        try:
            code = child.wait(self._deadline, self._interrupted)
        finally:
            child.stop(timeout_s=0.0)
        if code != 0:
            message = f"Failed to clone {url!r} (exit code {code}){child.last_lines()}"
            raise ProviderError(message, _NAME)
        return self._clone_dir


def _require(program: str, advice: str) -> None:
    if shutil.which(program) is None:
        message = f"`{program}` executable not found; {advice}"
        raise ProviderError(message, _NAME)
