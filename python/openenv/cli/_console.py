"""Where the command line writes, and its exit codes."""

# ruff: noqa: N818 - STYLE 8: errors are named by what happened, not by a suffix

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.table import Table

from openenv.errors import OpenEnvError

# Results go to standard output, so that they can be piped; all else to the other.
output: Final = Console(highlight=False)
status: Final = Console(stderr=True, highlight=False)
_PIPED_WIDTH: Final = 10_000
# ECMA-48: control sequences, control strings, other escapes, single controls; all but
# the tabulator and the new line.
_CONTROLS: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[PX\]^_].*?(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]",
    re.DOTALL,
)


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
    say(Text.assemble(("Error:", "bold red"), " ", plain(str(error))))


def plain(text: str) -> str:
    """Take out what moves a terminal's cursor or colours it: others wrote the text."""
    return _CONTROLS.sub("", text)


def show_table(table: Table) -> None:
    """Print a table; a pipe gets each row on one line, however long it is."""
    wide = Console(file=output.file, width=_PIPED_WIDTH, highlight=False)
    (output if output.is_terminal else wide).print(table)


def say(text: Text | str) -> None:
    """Tell a sentence: a terminal breaks it between words, a pipe not at all."""
    status.print(text, markup=False, soft_wrap=not status.is_terminal)
