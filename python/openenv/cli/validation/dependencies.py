"""What a package's modules import, against what its `pyproject.toml` declares."""

from __future__ import annotations

import ast
import re
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_REQUIREMENT: Final = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[(?P<extras>[^\]]*)\])?"
)
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_MISSING: Final = re.compile(r"\b(ImportError|ModuleNotFoundError|(Base)?Exception)\b")
_OURS: Final = frozenset({"openenv", "openenv_core"})
# Folders and files that hold no module of the installed package.
_NO_PARTS: Final = frozenset(
    {"benchmarks", "build", "dist", "docs", "examples", "node_modules", "notebooks"}
    | {"outputs", "scripts", "test", "tests", "tools", "venv"}
)
_NO_MODULES: Final = re.compile(r"(setup|conftest|noxfile|test_.*|.*_test)\.py")


class NotInstalled(Exception):  # noqa: N818 - what was found, not an error of ours
    """A declared dependency is not here, so what it brings is unknown."""


def undeclared(
    folder: Path, project: dict[str, Any]
) -> list[tuple[str, int, str, str]]:
    """Find imports of what the package's dependencies do not bring.

    Args:
        folder: the package's.
        project: the table `project` of its `pyproject.toml`.

    Returns:
        The file, the line, the module and the distribution of each module's first
        import. What is not installed is left out: its import fails elsewhere.

    Raises:
        NotInstalled: a declared dependency is not here.
    """
    own = _own_names(folder)
    found: dict[str, tuple[str, int]] = {}
    for path in _modules(folder):
        for name, line in _imports(path):
            if name not in own and name not in sys.stdlib_module_names:
                found.setdefault(name, (str(path.relative_to(folder)), line))
    if not found:
        return []
    holders, brought = metadata.packages_distributions(), _brought(project)
    return [
        (file, line, name, holders[name][0])
        for name, (file, line) in found.items()
        if name in holders and not brought & {normal(each) for each in holders[name]}
    ]


def normal(name: str) -> str:
    """Return a distribution's name as all ways to write it have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _modules(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.py")):
        *folders, name = path.relative_to(folder).parts
        hidden = any(each in _NO_PARTS or each.startswith(".") for each in folders)
        # A folder of a virtual environment may have any name.
        foreign = hidden or "site-packages" in folders
        if not foreign and not _NO_MODULES.fullmatch(name):
            yield path


def _own_names(folder: Path) -> frozenset[str]:
    """Name what may be a module of the package's own, wherever it is run from."""
    names = {folder.name, *_OURS}
    for path in _modules(folder):
        names |= {*path.relative_to(folder).parent.parts, path.stem}
    return frozenset(names)


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # told where it is imported
    yield from _imports_of(tree.body)


def _imports_of(body: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Yield what is imported when the module is: not in functions, not tried."""
    for node in body:
        match node:
            case ast.Import(names=names):
                for each in names:
                    yield each.name.partition(".")[0], node.lineno
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0], node.lineno
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.Try(handlers=handlers) if any(map(_catches, handlers)):
                yield from _imports_of([*node.orelse, *node.finalbody])
            case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
                yield from _imports_of(node.orelse)
            case ast.stmt():
                yield from _imports_of(ast.iter_child_nodes(node))


def _catches(handler: ast.ExceptHandler) -> bool:
    caught = "" if handler.type is None else ast.unparse(handler.type)
    return not caught or bool(_MISSING.search(caught))


def _brought(project: dict[str, Any]) -> set[str]:
    """Name what the declared dependencies and their dependencies are.

    Extras count as declared: an image may install them.
    """
    optional = project.get("optional-dependencies", {})
    lists = [optional[each] for each in optional] if isinstance(optional, dict) else []
    dependencies = project.get("dependencies", [])
    waiting = [*map(str, dependencies)] if isinstance(dependencies, list) else []
    needed = len(waiting)
    waiting += [str(each) for many in lists if isinstance(many, list) for each in many]
    seen: set[tuple[str, str]] = set()
    for number, requirement in enumerate(waiting):
        for name, extra in _asked(requirement):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            requires = _requires(name)
            if requires is None:
                if number < needed and ";" not in requirement:
                    raise NotInstalled(name)
                continue
            waiting += [each for each in requires if _EXTRA.findall(each) == [extra]]
            waiting += [each for each in requires if not _EXTRA.search(each)]
    return {name for name, _ in seen}


def _asked(requirement: str) -> list[tuple[str, str]]:
    match = _REQUIREMENT.match(requirement)
    if match is None:
        return []
    extras = [each.strip() for each in (match["extras"] or "").split(",")]
    return [(normal(match["name"]), each) for each in {"", *extras}]


def _requires(name: str) -> list[str] | None:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return None
