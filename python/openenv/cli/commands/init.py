"""`openenv init`: write a new environment package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openenv.cli._console import output
from openenv.cli._scaffold import Template, create_package


def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="snake_case, such as my_env.")
    ],
    *,
    template: Annotated[
        Template,
        typer.Option(
            "--template",
            "-t",
            help="typed: pydantic models; msgspec: faster structs; mcp: tools.",
        ),
    ] = Template.TYPED,
    output_dir: Annotated[
        Path,
        typer.Option(
            "--output-dir", "-o", help="Where the folder NAME goes.", file_okay=False
        ),
    ] = Path(),
) -> None:
    """Write a new environment package.

    It is complete: its tests pass, and it can be served, validated and built at once.
    Nothing is overwritten, and a failure leaves nothing behind.

    Example: openenv init my_env --template msgspec
    """
    written = create_package(name, output_dir, template)
    folder = output_dir / name
    for path in written:
        output.print(str(folder / path), markup=False, soft_wrap=True)
    output.print(f"Created {len(written)} files. Next:", markup=False)
    for step in ("validate", "serve", "build"):
        line = f"  openenv {step} {folder}"
        output.print(line, markup=False, soft_wrap=True)
