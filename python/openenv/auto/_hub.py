"""Environments that are Spaces of the Hugging Face Hub: their names and their packages.

Installing one runs its code on this machine, so a person is asked first, at a terminal;
elsewhere the caller must have said that the code is trusted.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from openenv.auto._discovery import installed
from openenv.auto._environment_info import key_of
from openenv.core._client.factories import subdomain

if TYPE_CHECKING:
    from openenv.auto._environment_info import EnvironmentInfo

_HOST: Final = "huggingface.co"
_SPACES: Final = f"https://{_HOST}/spaces/"
_ADDRESS: Final = re.compile(
    rf"(?:https?://)?(?:www\.)?{re.escape(_HOST)}/(?:spaces/)?"
)
_REPO_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_TRUST_VARIABLE: Final = "OPENENV_TRUST_REMOTE_CODE"
_SHOWN_CHARACTERS: Final = 2000


def is_hub_name(name: str) -> bool:
    """Tell whether a name means a Space, not an installed environment."""
    return "/" in name or _HOST in name


def repo_id(name: str) -> str:
    """Return ``owner/name`` of what names a Space, its address included.

    Raises:
        ValueError: It names none.
    """
    place = _ADDRESS.sub("", name.strip(), count=1).rstrip("/")
    if not _REPO_ID.fullmatch(place):
        message = (
            f"{name!r} names no Space: write owner/name, or "
            f"{_SPACES}owner/name as the browser shows it"
        )
        raise ValueError(message)
    return place


def space_url(repo: str) -> str:
    """Return the address of a Space's server."""
    return f"https://{subdomain(repo)}.hf.space"


def ensure_installed(repo: str, *, trusted: bool) -> EnvironmentInfo:
    """Return a Space's environment, installed by now.

    One of the same name that was not installed from another Space is taken as it is.

    Args:
        repo: The Space, ``owner/name``.
        trusted: Nobody is asked; so it is when the variable
            ``OPENENV_TRUST_REMOTE_CODE`` is ``1``, ``true`` or ``yes``.

    Raises:
        ValueError: It was refused, could not be installed, or holds no environment.
    """
    found = _installed(repo)
    if found is None:
        if not trusted and not _is_trusted_by_variable():
            _confirm(repo)
        _install(f"git+{_SPACES}{repo}")
        importlib.invalidate_caches()
        found = _installed(repo)
    if found is None:
        message = f"{_SPACES}{repo} is installed, but has no package with openenv.yaml"
        raise ValueError(message)
    return found


def _installed(repo: str) -> EnvironmentInfo | None:
    environments = installed()
    for info in environments.values():
        if _is_from(info, f"{_SPACES}{repo}"):
            return info
    named = environments.get(key_of(repo.partition("/")[2]))
    if named is None or (named.source_url or "").startswith(_SPACES):
        return None
    return named


def _is_from(info: EnvironmentInfo, url: str) -> bool:
    source = (info.source_url or "").rstrip("/").removesuffix(".git")
    return source.lower() == url.lower()


def _is_trusted_by_variable() -> bool:
    return os.getenv(_TRUST_VARIABLE, "").strip().lower() in {"1", "true", "yes"}


def _confirm(repo: str) -> None:
    how = f"To trust it, pass trust_remote_code=True or set {_TRUST_VARIABLE}=1."
    if not sys.stdin.isatty():
        message = (
            f"{_SPACES}{repo} is not installed: its code would run on this machine, "
            f"and there is no terminal to ask for your consent.\n{how}"
        )
        raise ValueError(message)
    question = (
        f"The package of {_SPACES}{repo} will be installed, and its code run on this "
        "machine.\nDo you trust it? [y/N] "
    )
    try:
        answer = input(question)
    except EOFError:
        answer = ""
    if answer.strip().lower() not in {"y", "yes"}:
        # upstream: auto/auto_env.py begins so
        message = f"Installation cancelled by user.\n{how}"
        raise ValueError(message)


def _install(url: str) -> None:
    """Install a package for this interpreter, by uv where there is one."""
    uv = shutil.which("uv")
    if uv is None:
        command = [sys.executable, "-m", "pip", "install", url]
    else:
        command = [uv, "pip", "install", "--python", sys.executable, url]
    done = subprocess.run(  # noqa: S603 - repo_id has let nothing else pass
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip()[-_SHOWN_CHARACTERS:]
        message = f"Failed to install {url} (exit code {done.returncode}):\n{told}"
        raise ValueError(message)
