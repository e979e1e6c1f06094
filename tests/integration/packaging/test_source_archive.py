"""The source archive holds what a build needs, and nothing that was built."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import pytest
from tests.support.processes import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)

BUILT = (".so", ".pyc", ".pyd", ".whl")
TOPS = {
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "pyproject.toml",
    "python",
    "rust",
}
CRATES = ("openenv-ws", "openenv-proto", "openenv-endpoint", "openenv-py")


@pytest.fixture(scope="module")
def names(source_archive: Path) -> set[str]:
    """Paths in the archive, below its top folder."""
    with tarfile.open(source_archive) as archive:
        paths = [name.split("/", 1) for name in archive.getnames()]
    return {path[1] for path in paths if len(path) > 1}


def test_the_source_archive_holds_these_and_no_others(names: set[str]):
    assert {name.split("/")[0] for name in names} == TOPS


def test_the_source_archive_holds_every_python_source(names: set[str]):
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "python").rglob("*.py*")
        if path.suffix in {".py", ".pyi"} and "__pycache__" not in path.parts
    }

    assert sources <= names


@pytest.mark.parametrize("crate", CRATES)
def test_the_source_archive_holds_every_crate_of_the_extension(
    crate: str, names: set[str]
):
    assert {f"rust/{crate}/Cargo.toml", f"rust/{crate}/src/lib.rs"} <= names


def test_the_source_archive_holds_nothing_that_was_built(names: set[str]):
    assert [name for name in names if name.endswith(BUILT)] == []
