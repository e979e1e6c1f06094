"""`openenv list`: the environments that can be named here."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from openenv.cli._console import output, status

if TYPE_CHECKING:
    from collections.abc import Iterator


def list_environments() -> None:
    """List the environments that can be named here.

    Those of ./envs and of this folder, and the installed ones.
    """
    # Here, so that the other commands start without PyYAML.
    from openenv.cli.manifest import MANIFEST_NAME, read_manifest  # noqa: PLC0415

    table = Table("environment", "folder", "app", box=None)
    seen: set[Path] = set()
    for folder in _folders(MANIFEST_NAME):
        if folder.resolve() in seen:
            continue
        seen.add(folder.resolve())
        manifest = read_manifest(folder / MANIFEST_NAME).manifest
        name = manifest.name if manifest else folder.name
        app = manifest.app if manifest else f"{MANIFEST_NAME} has errors"
        table.add_row(Text(name), Text(str(folder)), Text(app))
    if table.row_count:
        output.print(table)
    else:
        status.print("There is no environment here; `openenv init NAME` writes one.")


def _folders(manifest_name: str) -> Iterator[Path]:
    for pattern in ("envs/*", "*", "."):
        for manifest in sorted(Path().glob(f"{pattern}/{manifest_name}")):
            yield manifest.parent
    for distribution in metadata.distributions():
        for file in distribution.files or ():
            if file.name == manifest_name:
                yield Path(str(file.locate())).parent
