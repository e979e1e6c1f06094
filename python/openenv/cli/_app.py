"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from openenv import __version__
from openenv.cli.commands.build import build
from openenv.cli.commands.containers import ps, stop
from openenv.cli.commands.fork import fork
from openenv.cli.commands.init import init
from openenv.cli.commands.list import list_environments
from openenv.cli.commands.push import push
from openenv.cli.commands.rollout import rollout
from openenv.cli.commands.schema import schema
from openenv.cli.commands.serve import serve
from openenv.cli.commands.validate import validate

app = typer.Typer(
    name="openenv",
    help="Run, serve and play OpenEnv environments.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in (init, validate, serve, build, push, fork, ps, stop, rollout, schema):
    app.command()(_command)
app.command("list")(list_environments)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"openenv {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Run, serve and play OpenEnv environments."""
