"""Call code of the environment's author; what it raises becomes a `Fault`."""

from __future__ import annotations

import os
import re
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
        raise Fault(describe(folder, error), "mend that line") from error


def describe(folder: Path, error: BaseException) -> str:
    """Tell the innermost line of the author's code, the exception and its text."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: SyntaxError: {error.msg}"
    text = plain_text(error)
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    where = place(folder, error)
    return f"{where}: {what}" if where else what


def place(folder: Path, error: BaseException) -> str:
    """Return `file:line` of the innermost line of the author's code, if any."""
    inside = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(f"{folder}{os.sep}")
    ]
    return f"{inside[-1].filename}:{inside[-1].lineno}" if inside else ""


def plain_text(error: BaseException) -> str:
    """Return an exception's text without pydantic's hint where to read about it."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything
        return ""
    text = re.sub(r"\n *For further information visit \S+", "", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
