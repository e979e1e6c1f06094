"""`openenv schema`: the JSON schema of `openenv.yaml`, for editors."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON schema of openenv.yaml, for editors.

    An editor finds it by the first line of openenv.yaml:
    "# yaml-language-server: $schema=openenv.schema.json"

    Example: openenv schema > openenv.schema.json
    """
    # Here, so that the other commands start without PyYAML.
    from openenv.cli.manifest import schema_text  # noqa: PLC0415

    typer.echo(schema_text(), nl=False)
