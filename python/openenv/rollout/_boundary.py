"""The one place where a rollout calls code of others: policies and sessions.

Whatever such code raises becomes a value here, so that one broken episode is counted
and the others go on. `KeyboardInterrupt`, `SystemExit` and cancellation pass through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Caught:
    """An exception of foreign code, as a value."""

    error: Exception


async def awaited(work: Awaitable[ResultT]) -> ResultT | Caught:
    """Await foreign work; its exception is returned, not raised."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return Caught(error)


def called(function: Callable[[], ResultT]) -> ResultT | Caught:
    """Call a foreign function; its exception is returned, not raised."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return Caught(error)
