"""Write a new environment package from the shipped templates."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
import tempfile
import zlib
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openenv.cli._console import WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

# Template files carry a suffix, so that no tool takes them for Python or a Dockerfile.
_SUFFIX: Final = ".in"
_MAX_NAME_LENGTH: Final = 96  # what the manifest takes
_PLACEHOLDER: Final = re.compile(r"@(\w+)@")
# What the package, its tests or what it needs import by these names.
_TAKEN: Final = frozenset(
    {
        *("openenv", "openenv_core", "server", "tests", "test", "setup", "conftest"),
        *("fastapi", "fastmcp", "mcp", "msgspec", "pydantic", "pydantic_core"),
        *("mypy", "mypy_extensions", "mypyc", "iniconfig", "packaging", "pathspec"),
        *("pluggy", "pygments", "py"),
        *("pytest", "starlette", "typing_extensions", "uvicorn", "uvloop"),
        *("httptools", "websockets", "yaml", "rich", "typer", "docker", "numpy"),
    }
)
# What no file of Windows can be called, in any case.
_DEVICES: Final = frozenset(
    {
        *("aux", "con", "nul", "prn"),
        *(f"{device}{number}" for device in ("com", "lpt") for number in range(10)),
    }
)
# What the front matter of a Space allows.
_COLORS: Final = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
_EMOJIS: Final = ("🎯", "🎲", "🧭", "🧩", "🔭", "🪄", "🛰️", "🗺️")


class Template(StrEnum):
    """What a new environment is made of."""

    TYPED = "typed"
    MSGSPEC = "msgspec"
    MCP = "mcp"


_LAYERS: Final[Mapping[Template, tuple[str, ...]]] = {
    Template.TYPED: ("common", "game", "typed"),
    Template.MSGSPEC: ("common", "game", "msgspec"),
    Template.MCP: ("common", "mcp"),
}
# What the package needs of openenv besides `core`.
_EXTRAS: Final[Mapping[Template, str]] = {
    Template.TYPED: "",
    Template.MSGSPEC: "",
    Template.MCP: ",mcp",
}


def check_name(name: str) -> None:
    """Refuse what cannot be a package's name.

    Raises:
        WrongUse: it is empty, no identifier, or another package's name.
    """
    if not name:
        raise WrongUse("the environment's name cannot be empty")
    # A distribution's name is ASCII, and it is made of the package's.
    if not _is_good(name):
        suggestion = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()
        better = f"; try {suggestion}" if _is_good(suggestion) else ""
        message = (
            f"{name!r} is not a valid Python identifier (ASCII, no _ first){better}"
        )
        raise WrongUse(message)
    if len(name) > _MAX_NAME_LENGTH:
        message = f"a name has at most {_MAX_NAME_LENGTH} characters, not {len(name)}"
        raise WrongUse(message)
    if name.lower() in _DEVICES:
        message = f"{name!r} is a device on Windows; try {name}_env"
        raise WrongUse(message)
    if name in _TAKEN or name in sys.stdlib_module_names:
        message = f"{name!r} is the name of another package; try {name}_env"
        raise WrongUse(message)


def _is_good(name: str) -> bool:
    # A distribution's name, and a manifest's, begins with a letter or digit.
    return (
        name.isascii()
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and not name.startswith("_")
    )


def create_package(name: str, parent: Path, template: Template) -> list[Path]:
    """Write the package's folder, whole or not at all.

    Args:
        name: the package's and the folder's name.
        parent: where the folder goes; made where it is missing.
        template: what it is made of.

    Returns:
        The files, relative to the new folder.

    Raises:
        WrongUse: the name is no good, or something is there already.
        OSError: the files cannot be written; nothing is left behind.
    """
    check_name(name)
    target = parent / name
    if target.is_file():
        message = f"{target} exists and is a file"
        raise WrongUse(message)
    if target.is_symlink() and not target.exists():
        message = f"{target} is a link to what is not there"
        raise WrongUse(message)
    if target.exists() and not target.is_dir():
        message = f"{target} exists and is no folder"
        raise WrongUse(message)
    if target.is_dir() and any(target.iterdir()):
        message = f"{target} already exists and is not empty"
        raise WrongUse(message)
    parent.mkdir(parents=True, exist_ok=True)
    # Beside the target: a rename within one file system is all or nothing.
    building = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
    try:
        written = _write_files(building, name, template)
        building.chmod(0o755)  # a temporary folder is its owner's alone
        if target.is_dir():
            target.rmdir()
        building.rename(target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return written


def class_prefix(name: str) -> str:
    """Tell what the classes of an environment are called: `my_game_env`, `MyGame`."""
    parts = name.removesuffix("_env").split("_")
    return "".join(part[:1].upper() + part[1:] for part in parts) or "Env"


def _write_files(folder: Path, name: str, template: Template) -> list[Path]:
    values = _values(name, template)
    written: set[Path] = set()
    for layer in _LAYERS[template]:
        root = files("openenv.cli") / "templates" / layer
        for relative, source in _walk(root):
            text = source.read_text(encoding="utf-8")
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_fill(text, values), encoding="utf-8", newline="\n")
            written.add(relative)
    return sorted(written)


def _walk(
    folder: Traversable, below: Path = Path()
) -> Iterator[tuple[Path, Traversable]]:
    for entry in folder.iterdir():
        path = below / entry.name
        if entry.is_dir():
            yield from _walk(entry, path)
        elif entry.name.endswith(_SUFFIX):
            yield path.with_name(entry.name.removesuffix(_SUFFIX)), entry


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found.group(1)], text)


def _values(name: str, template: Template) -> dict[str, str]:
    # The same name gives the same page; another name most likely another.
    number = zlib.crc32(name.encode())
    return {
        "name": name,
        "dashed": name.replace("_", "-").strip("-"),
        "title": name.replace("_", " ").strip().title(),
        "Prefix": class_prefix(name),
        "extras": _EXTRAS[template],
        "emoji": _EMOJIS[number % len(_EMOJIS)],
        "color_from": _COLORS[number // 8 % len(_COLORS)],
        "color_to": _COLORS[number // 64 % len(_COLORS)],
    }
