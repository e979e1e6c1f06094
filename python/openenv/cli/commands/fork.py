"""`openenv fork`: copy a Space to your account."""

from __future__ import annotations

from typing import Annotated

import typer

from openenv.cli._console import WrongUse, output
from openenv.cli._pairs import parse_pairs


def fork(
    source: Annotated[
        str, typer.Argument(metavar="OWNER/SPACE", help="The Space to copy.")
    ],
    *,
    repo_id: Annotated[
        str | None,
        typer.Option("--repo-id", "-r", help="Name of the copy; default: the same."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Only you see the copy.")
    ] = False,
    set_env: Annotated[
        list[str] | None,
        typer.Option("--set-env", "-e", help="Public variable KEY=VALUE."),
    ] = None,
    set_secret: Annotated[
        list[str] | None,
        typer.Option("--set-secret", "--secret", "-s", help="Secret KEY=VALUE."),
    ] = None,
    hardware: Annotated[
        str, typer.Option("--hardware", "-H", help="Such as t4-medium.")
    ] = "cpu-basic",
) -> None:
    """Copy a Space to your account.

    Example: openenv fork org/my_env --repo-id mine --set-env LEVEL=hard
    """
    owner, slash, name = source.partition("/")
    if not (owner and slash and name) or "/" in name:
        message = f"the Space must be OWNER/SPACE, got {source!r}"
        raise WrongUse(message)
    variables = parse_pairs("--set-env", set_env or ())
    secrets = parse_pairs("--set-secret", set_secret or (), secret=True)
    # Here, so that a wrong argument is told without the Hub's library.
    from openenv.cli._space import (  # noqa: PLC0415
        as_pairs,
        connect,
        full_repo_id,
        told,
    )

    api, user = connect()
    target = full_repo_id(repo_id, user, name)
    with told("the fork"):
        made = api.duplicate_repo(
            from_id=source,
            to_id=target,
            repo_type="space",
            private=private,
            space_hardware=hardware,  # type: ignore[arg-type]
            space_variables=as_pairs(variables) or None,
            space_secrets=as_pairs(secrets) or None,
        )
    output.print(str(made), markup=False, soft_wrap=True)
