"""A repository as `UVProvider` takes it: its URL, and a clone that goes again.

The URL is pip's: ``git+https://host/repository@revision#subdirectory=folder``.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from openenv.core.containers.runtime._child import Child
from openenv.core.containers.runtime._owner_guard import folder_guard
from openenv.errors import ProviderError

if TYPE_CHECKING:
    import threading

_PREFIX: Final = "git+"
_NAME: Final = "UVProvider"
# A private repository is an error, not a question to the terminal.
_QUIET: Final = {"GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Say which folder of which revision of which repository.

    Attributes:
        url: As git takes it.
        revision: A branch, tag or commit; None for the default branch.
        folder: Inside of the repository; empty for its root.
    """

    url: str
    revision: str | None = None
    folder: str = ""


def source_of(project_path: str) -> Source | None:
    """Read a ``git+`` URL; None for what is none.

    Raises:
        ValueError: It names a revision or a folder that cannot be.
    """
    if not project_path.startswith(_PREFIX):
        return None
    whole, _, fragment = project_path.removeprefix(_PREFIX).partition("#")
    url, revision = whole, None
    # Another `@` stands before the host, or in what is no URL (git@host:repository).
    if "://" in whole and "@" in urlsplit(whole).path:
        url, _, revision = whole.rpartition("@")
    folder = parse_qs(fragment).get("subdirectory", [""])[0]
    path = PurePosixPath(folder)
    if path.is_absolute() or ".." in path.parts:
        message = f"subdirectory={folder} in {project_path!r} leaves the repository"
        raise ValueError(message)
    if revision is not None and (not revision or revision.startswith("-")):
        message = f"{revision!r} in {project_path!r} is no revision"
        raise ValueError(message)
    return Source(url=url, revision=revision, folder=folder)


class Clone:
    """A temporary folder with a repository, until `remove` or this process is gone."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="openenv-uv-clone-")
        self._guard = folder_guard(self.path)

    def fetch(
        self, source: Source, deadline: float, interrupted: threading.Event
    ) -> str:
        """Clone a repository and return the project's folder.

        Raises:
            ProviderError: git refused, there is no such folder, or it was interrupted.
            TimeoutError: It took until the deadline (of the monotonic clock).
        """

        def git(what: str, *arguments: str) -> None:
            child = Child(f"git {what}", ["git", *arguments], _QUIET)
            try:
                code = child.wait(deadline, interrupted)
            finally:
                child.stop(timeout_s=0.0)
            if code != 0:
                message = f"Failed to {what} (exit code {code}){child.last_lines()}"
                raise ProviderError(message, _NAME)

        # A commit may lie at any depth, and a server need not give it by its id.
        depth = ("--depth", "1") if source.revision is None else ()
        clone = ("clone", "--quiet", *depth, "--", source.url, self.path)
        git(f"clone {source.url}", *clone)
        if source.revision is not None:
            checkout = ("-C", self.path, "checkout", "--quiet", source.revision, "--")
            git(f"checkout {source.revision}", *checkout)
        folder = Path(self.path, source.folder)
        if not folder.is_dir():
            message = f"{source.url} has no folder {source.folder!r}"
            raise ProviderError(message, _NAME)
        return str(folder)

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._guard is not None:
            self._guard.close()
