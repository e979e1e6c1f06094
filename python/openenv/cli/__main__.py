"""The entry of the command `openenv`, also as `python -m openenv.cli`."""

from __future__ import annotations

import io
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import typer

    app: typer.Typer

_OWN_PACKAGE = "openenv"
_INTERRUPTED = 130


def main() -> None:
    """Run the command line; ends the process with the command's exit code."""
    try:
        _main()
    except KeyboardInterrupt:
        _end_interrupted()
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            _end_interrupted()
        raise


def _end_interrupted() -> NoReturn:
    # One more Ctrl-C must not hit the interpreter while it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(_INTERRUPTED)


def _main() -> None:
    _let_every_text_be_written()
    try:
        from openenv.cli._app import app as command  # noqa: PLC0415 - a named extra
    except ModuleNotFoundError as error:
        if (error.name or _OWN_PACKAGE).partition(".")[0] == _OWN_PACKAGE:
            raise
        sys.stderr.write(
            f"the command openenv needs the package {error.name!r}: "
            "pip install 'openenv[cli]'\n"
        )
        sys.exit(1)
    from openenv.core._logs import show_warnings  # noqa: PLC0415 - as above

    show_warnings()
    from openenv.cli._console import CommandFailed, show_error  # noqa: PLC0415 - rich
    from openenv.errors import OpenEnvError  # noqa: PLC0415 - as above

    try:
        command(prog_name="openenv")
    except CommandFailed as error:
        show_error(error)
        sys.exit(error.code)
    except OpenEnvError as error:  # some of them are an OSError as well
        show_error(error)
        sys.exit(1)
    except OSError as error:
        show_error(_describe(error))
        sys.exit(1)


def _let_every_text_be_written() -> None:
    """Write what a console's encoding has not as its number.

    A console of Windows has a few hundred characters, and a file's name need not be
    UTF-8 anywhere.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _describe(error: OSError) -> str:
    """Say what the system refused, as a shell does."""
    named = f"{error.filename}: " if error.filename is not None else ""
    return f"{named}{error.strerror or error}"


def __getattr__(name: str) -> object:
    # The Typer object, made when somebody asks for it: importing this module must not
    # need the extra.
    if name == "app":
        from openenv.cli._app import app as command  # noqa: PLC0415 - a named extra

        return command
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


if __name__ == "__main__":
    main()
