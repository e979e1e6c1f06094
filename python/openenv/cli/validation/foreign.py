"""Call code of the environment's author; what it raises becomes a `Fault`."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, TypeVar

from openenv.cli.validation.checks import Fault
from openenv.rollout.errors import InvalidRollout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ResultT = TypeVar("ResultT")


def call(folder: Path, function: Callable[[], ResultT]) -> ResultT:
    """Call a function that runs the author's code.

    Args:
        folder: the author's; the innermost line of it is told.
        function: what to call.

    Raises:
        Fault: it raised something.
        InvalidRollout: our own loader refused the package.
    """
    try:
        return function()
    except (Fault, InvalidRollout, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise Fault(_describe(folder, error), "mend that line") from error


def _describe(folder: Path, error: BaseException) -> str:
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: SyntaxError: {error.msg}"
    inside = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(str(folder))
    ]
    return f"{inside[-1].filename}:{inside[-1].lineno}: {what}" if inside else what
