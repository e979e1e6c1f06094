"""`openenv ps` and `openenv stop`: containers of environments on this machine."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from openenv.cli._console import (
    CommandFailed,
    ExitCode,
    WrongUse,
    output,
    show_table,
    status,
)

STOP_TIMEOUT_S = 12


def ps() -> None:
    """List the running containers of environments.

    These are the containers of images that `openenv build` made.

    Example: openenv ps
    """
    from openenv.cli._docker import Engine  # noqa: PLC0415 - subprocess

    table = Table("container", "environment", "image", "address", box=None)
    for each in Engine().containers():
        told = (
            each.short_id,
            each.labels["openenv.name"],
            _image(each),
            _address(each),
        )
        table.add_row(*map(Text, told))
    if table.row_count:
        show_table(table)
    else:
        status.print("No container of an environment runs.")


def stop(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="CONTAINER", help="As `openenv ps` shows them."),
    ] = None,
    *,
    strays: Annotated[
        bool,
        typer.Option("--strays", help="Remove what a killed process left behind."),
    ] = False,
) -> None:
    """Stop and remove containers of environments.

    Examples: openenv stop 3f2a91bc04de; openenv stop --strays
    """
    if not names and not strays:
        raise WrongUse("name a container, or give --strays")
    for name in names or ():
        _stop(name)
    if strays:
        _remove_strays()


def _stop(name: str) -> None:
    from openenv.cli._docker import Engine  # noqa: PLC0415 - subprocess

    engine = Engine()
    found = [
        each
        for each in engine.containers()
        if each.name == name or (name and each.id.startswith(name))
    ]
    if len(found) != 1:
        what = "several containers" if found else "no running container"
        message = f"{what} of an environment: {name}"
        raise CommandFailed(message)
    found[0].stop(timeout=STOP_TIMEOUT_S)
    found[0].remove(v=True, force=True)
    output.print(name, markup=False)


def _remove_strays() -> None:
    try:
        # Here, because it needs the extra `docker`.
        strays = import_module("openenv.core.containers.runtime.strays")
    except ImportError as error:
        message = f"--strays needs {error.name}: pip install 'openenv[docker]'"
        raise CommandFailed(message) from None
    removed = strays.remove_strays()
    for each in removed:
        output.print(f"{each.kind} {each.name} ({each.image})", markup=False)
    if not removed:
        status.print("Nothing was left behind.")
    raise typer.Exit(ExitCode.DONE)


def _image(container: object) -> str:
    tags = getattr(getattr(container, "image", None), "tags", None) or ["-"]
    return str(tags[0])


def _address(container: object) -> str:
    ports = getattr(container, "ports", {})
    found = [each["HostPort"] for bound in ports.values() for each in bound or ()]
    return f"http://localhost:{found[0]}" if found else "-"
