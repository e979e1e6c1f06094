"""Where the command line writes, and its exit codes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from rich.console import Console

if TYPE_CHECKING:
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


def show_error(error: OpenEnvError) -> None:
    """Tell an error in one sentence; a user's mistake is no traceback."""
    status.print("Error:", style="bold red", end=" ")
    status.print(str(error), markup=False)
