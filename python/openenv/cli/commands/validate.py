"""`openenv validate`: check a package, or a server that runs."""

from __future__ import annotations

import json
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openenv.cli._console import ExitCode, WrongUse, output, status

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.status import Status

    from openenv.cli.validation.checks import Listener
    from openenv.cli.validation.report import Report

DEFAULT_TIMEOUT_S = 60.0
MIN_TIMEOUT_S = 0.1


class Level(StrEnum):
    """How far validation goes: files alone, or the code as well."""

    STATIC = "static"
    RUNTIME = "runtime"
    SEMANTIC = "semantic"


def validate(  # noqa: PLR0913 - one parameter an option of the command
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="DIR|URL", help="Folder of the package (default: here), or URL."
        ),
    ] = None,
    *,
    url: Annotated[
        str | None, typer.Option("--url", help="Check the server that runs there.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A warning fails, too.")
    ] = False,
    level: Annotated[
        Level,
        typer.Option(help="static: look at files only, run no code of the package."),
    ] = Level.SEMANTIC,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON.")
    ] = False,
    report_file: Annotated[
        Path | None,
        typer.Option("--output", help="Write the JSON report to this file."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(min=MIN_TIMEOUT_S, help="Seconds that the code may take."),
    ] = DEFAULT_TIMEOUT_S,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every check.")
    ] = False,
) -> None:
    """Check an environment package, or a server that runs.

    Reads the manifest, pyproject.toml and the Dockerfile, imports the package in a
    process of its own, and plays episodes: the same seed must play the same episode,
    the state must count the steps, two sessions must share nothing, and more.

    Exit code 0: valid; 1: something failed; 2: wrong use.

    Examples: openenv validate my_env --strict;
    openenv validate --url http://localhost:8000
    """
    # Here, so that `--help` needs no YAML.
    from openenv.cli.validation.report import Report  # noqa: PLC0415

    folder, url = _choose(target, url)
    report = Report(url or folder.resolve().name, strict)
    with _progress(quiet=as_json) as spinner:
        listener = _listener(report, spinner)
        if url is not None:
            _check_url(url, timeout, listener)
        else:
            _check_folder(folder, level, timeout, listener)
    text = json.dumps(report.as_dict(), indent=2)
    if report_file is not None:
        report_file.write_text(f"{text}\n", encoding="utf-8")
    if as_json:
        typer.echo(text)
    else:
        report.show(output, every=verbose)
    raise typer.Exit(ExitCode.DONE if report.passed else ExitCode.FAILED)


def _choose(target: str | None, url: str | None) -> tuple[Path, str | None]:
    from openenv.cli.validation.running import server_url  # noqa: PLC0415 - as above

    if target is not None and target.startswith(("http://", "https://")):
        if url is not None and url != target:
            raise WrongUse("two URLs are given; which one is meant?")
        url = target
    elif target is not None and url is not None:
        raise WrongUse("give a folder or --url, not both")
    if url is None:
        folder = Path(target or ".")
        if not folder.is_dir():
            message = f"{folder} is no folder"
            raise WrongUse(message)
        return folder, None
    try:
        return Path(), server_url(url)
    except ValueError as error:
        raise WrongUse(str(error)) from None


def _check_folder(
    folder: Path, level: Level, timeout_s: float, listener: Listener
) -> None:
    from openenv.cli.validation.checks import run_checks  # noqa: PLC0415 - as above
    from openenv.cli.validation.package import (  # noqa: PLC0415 - as above
        PACKAGE_CHECKS,
        Package,
    )
    from openenv.cli.validation.probe import probe  # noqa: PLC0415 - as above

    package = Package(folder.resolve())
    passed = run_checks(PACKAGE_CHECKS, package, listener)
    # Without these there is nothing to import: their faults are told already.
    runs = {"manifest.valid", "package.files"} <= passed
    if level is not Level.STATIC and runs:
        probe(package.folder, package.manifest, timeout_s, listener)


def _check_url(url: str, timeout_s: float, listener: Listener) -> None:
    from openenv.cli.validation.running import (  # noqa: PLC0415 - as above
        Running,
        check_running,
    )

    check_running(Running(url, timeout_s), listener)


def _listener(report: Report, spinner: Status | None) -> Listener:
    from openenv.cli.validation.checks import Finding  # noqa: PLC0415 - as above

    def listen(what: str | Finding) -> None:
        if isinstance(what, Finding):
            report.findings.append(what)
        elif spinner is not None:
            spinner.update(what)

    return listen


def _progress(*, quiet: bool) -> AbstractContextManager[Status | None]:
    if quiet or not status.is_terminal:
        return nullcontext()
    return status.status("")
