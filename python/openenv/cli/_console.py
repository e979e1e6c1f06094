"""Where the command line writes, and its exit codes."""

# ruff: noqa: N818 - STYLE 8: errors are named by what happened, not by a suffix

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rich.console import Console

from openenv.errors import OpenEnvError

# Results go to standard output, so that they can be piped; all else to the other.
output: Final = Console(highlight=False)
status: Final = Console(stderr=True, highlight=False)


class ExitCode(IntEnum):
    """What the process tells its caller."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INTERRUPTED = 130


class CommandFailed(OpenEnvError):
    """Report that a command could not do what it was asked for."""

    code = ExitCode.FAILED


class WrongUse(CommandFailed):
    """Report what the user asked for and cannot have."""

    code = ExitCode.USAGE


def show_error(error: OpenEnvError | str) -> None:
    """Tell an error in one sentence; a user's mistake is no traceback."""
    status.print("Error:", style="bold red", end=" ")
    status.print(str(error), markup=False, soft_wrap=True)
