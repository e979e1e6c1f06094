"""`openenv rollout`: play many episodes in many sessions at once."""

from __future__ import annotations

import asyncio
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from openenv.cli._console import ExitCode, output, show_error, status
from openenv.cli._progress import run_with_progress
from openenv.cli._summary import show_summary
from openenv.rollout import InvalidRollout, Rollout, RolloutError, RolloutOptions

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_MAX_STEPS = 1000


def rollout(  # noqa: PLR0913 - one parameter an option of the command
    environment: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV",
            help="Folder with openenv.yaml, or a name: ./envs/NAME, ./NAME, or an "
            "installed package. Not needed with --base-url.",
        ),
    ] = None,
    *,
    sessions: Annotated[
        int, typer.Option("--sessions", "-n", min=1, help="Sessions held at once.")
    ] = 1,
    episodes: Annotated[
        int, typer.Option("--episodes", "-m", min=1, help="Episodes in all.")
    ] = 1,
    policy: Annotated[
        str | None,
        typer.Option(
            help="module:function, called with (observation, episode). Default: random "
            "actions, or calls of tools, from the environment's schemas."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Append one JSON line an episode to this file."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="Use this running server instead of starting one."),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="OPENENV_API_KEY",
            help="Send it to --base-url (Authorization: Bearer KEY).",
        ),
    ] = None,
    max_steps: Annotated[
        int, typer.Option(min=0, help="Cut an episode after so many steps; 0: never.")
    ] = DEFAULT_MAX_STEPS,
    seed: Annotated[int, typer.Option(help="Decides the seed of each episode.")] = 0,
) -> None:
    """Play many episodes of an environment in many sessions at once.

    Exit code 0: every episode was played; 1: one failed, or the server did;
    2: wrong use; 130: stopped by Ctrl-C, what was finished is kept.

    Example: openenv rollout my_env --sessions 100 --episodes 1000
    """
    options = RolloutOptions(
        environment=environment,
        sessions=sessions,
        episodes=episodes,
        policy=policy,
        out=out,
        base_url=base_url,
        max_steps=max_steps or None,
        seed=seed,
        headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
    )
    raise typer.Exit(_play(options))


def _play(options: RolloutOptions) -> ExitCode:
    try:
        with Rollout(options) as prepared:
            return _play_prepared(prepared)
    except RolloutError as error:
        show_error(error)
        wrong_use = isinstance(error, InvalidRollout)
        return ExitCode.USAGE if wrong_use else ExitCode.FAILED
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _play_prepared(prepared: Rollout) -> ExitCode:
    code, error = ExitCode.DONE, None
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(run_with_progress(prepared, status))
    except InvalidRollout:
        raise  # nothing was played: there is nothing to sum up
    except RolloutError as raised:
        code, error = ExitCode.FAILED, raised
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    show_summary(prepared, output)
    if error is not None:
        show_error(error)
    if code is ExitCode.DONE and (prepared.tally.failed or prepared.tally.not_run):
        return ExitCode.FAILED
    return code


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not there on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
