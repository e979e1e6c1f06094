"""The commands, put together."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand
from typing_extensions import override

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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

app = typer.Typer(
    name="openenv",
    help="Write, check, serve, publish and play OpenEnv environments.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _help(command: Callable[..., None]) -> str:
    """Join the lines of each paragraph, so that a terminal breaks them where it ends.

    Examples keep a line each.
    """
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(
        text if text.startswith("Example") else " ".join(text.split())
        for text in paragraphs
    )


class _Command(TyperCommand):
    """Tells a wrong value in the command line's words, not in a library's."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _own_words(error.message)
            raise


def _own_words(message: str) -> str:
    """Turn what pydantic says, which typer parses values with since 0.29."""
    said, _, _ = message.partition(", unable to parse")
    return said.removeprefix("Value error, ").replace("Input should be", "it must be")


_COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "init": init,
    "validate": validate,
    "serve": serve,
    "build": build,
    "push": push,
    "fork": fork,
    "list": list_environments,
    "ps": ps,
    "stop": stop,
    "rollout": rollout,
    "schema": schema,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, cls=_Command, help=_help(_command))(_command)


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
    """Write, check, serve, publish and play OpenEnv environments."""
