"""`openenv list`: the environments that can be named here."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from openenv.cli._console import show_table, status

if TYPE_CHECKING:
    from collections.abc import Iterator


def list_environments() -> None:
    """List the environments that can be named here.

    Those of ./envs and of this folder, and the installed ones.

    Example: openenv list
    """
    # Here, so that the other commands start without PyYAML.
    from openenv.cli.manifest import MANIFEST_NAME  # noqa: PLC0415

    table = Table("environment", "folder", "app", box=None)
    seen: set[Path] = set()
    for folder in _folders(MANIFEST_NAME):
        if folder.resolve() in seen:
            continue
        seen.add(folder.resolve())
        table.add_row(*map(Text, _describe(folder, MANIFEST_NAME)))
    if table.row_count:
        show_table(table)
    else:
        status.print("There is no environment here; `openenv init NAME` writes one.")


def _describe(folder: Path, manifest_name: str) -> tuple[str, str, str]:
    from openenv.cli.manifest import read_manifest  # noqa: PLC0415 - as above

    try:
        manifest = read_manifest(folder / manifest_name).manifest
    except OSError as error:
        trouble = f"{manifest_name} cannot be read: {error.strerror}"
        return folder.name, str(folder), trouble
    if manifest is None:
        return folder.name, str(folder), f"{manifest_name} has errors"
    return manifest.name, str(folder), manifest.app


def _folders(manifest_name: str) -> Iterator[Path]:
    for pattern in ("envs/*", "*", "."):
        for manifest in sorted(Path().glob(f"{pattern}/{manifest_name}")):
            yield manifest.parent
    for distribution in metadata.distributions():
        for file in distribution.files or ():
            if file.name == manifest_name:
                yield Path(str(file.locate())).parent
