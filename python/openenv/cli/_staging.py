"""A copy of an environment's folder, as it is built or published."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from openenv.cli._console import CommandFailed, WrongUse
from openenv.cli.manifest import MANIFEST_NAME, Manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

# What no image and no Space needs, whatever the ignore files say.
NEVER_COPIED: Final = (
    *(".git", ".venv", "venv", "__pycache__", "*.pyc", "*.egg-info"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache"),
)
_WHEEL_PYTHON: Final = re.compile(r"-cp3(\d+)-cp3\d+-[^-]+\.whl$")


def require_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder that must be an environment's.

    Raises:
        CommandFailed: it is none, or its manifest has errors.
    """
    if not folder.is_dir():
        message = f"{folder} is no folder"
        raise CommandFailed(message)
    path = folder / MANIFEST_NAME
    if not path.is_file():
        message = f"{folder} is no environment: it has no {MANIFEST_NAME}"
        raise CommandFailed(message)
    read = read_manifest(path)
    if read.manifest is None:
        raise CommandFailed("; ".join(read.describe(error) for error in read.errors))
    return read.manifest


@contextmanager
def staged(folder: Path, wheel: Path | None) -> Iterator[Path]:
    """Copy a folder to a temporary place, and lay a wheel into its `dist/`.

    Without a wheel a `dist/` of the folder's own is copied as it is.
    """
    with tempfile.TemporaryDirectory(prefix="openenv-") as temporary:
        target = Path(temporary) / folder.resolve().name
        shutil.copytree(
            folder, target, symlinks=True, ignore=shutil.ignore_patterns(*NEVER_COPIED)
        )
        if wheel is not None:
            shutil.rmtree(target / "dist", ignore_errors=True)
            (target / "dist").mkdir()
            shutil.copy2(wheel, target / "dist")
        yield target


def choose_wheel(named: Path | None) -> Path | None:
    """Return the wheel of openenv that an image is to hold.

    That is the named one, else the one that the running openenv was installed from
    where it still lies there, else none: then the package index is asked.

    Raises:
        WrongUse: the named one is no wheel of openenv.
    """
    if named is None:
        return _installed_wheel()
    if not (named.is_file() and re.match(r"openenv-.*\.whl$", named.name)):
        message = f"{named} is no wheel of openenv"
        raise WrongUse(message)
    return named


def base_image_of(wheel: Path | None) -> str | None:
    """Return the Python image whose interpreter a wheel fits; None where any does."""
    found = _WHEEL_PYTHON.search(wheel.name) if wheel is not None else None
    return f"python:3.{found.group(1)}-slim" if found else None


def _installed_wheel() -> Path | None:
    try:
        text = metadata.distribution("openenv").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    url = urlsplit(json.loads(text)["url"]) if text else None
    if url is None or url.scheme != "file" or not url.path.endswith(".whl"):
        return None
    path = Path(url2pathname(unquote(url.path)))
    return path if path.is_file() else None
