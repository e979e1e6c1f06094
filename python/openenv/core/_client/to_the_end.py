"""Cleaning up that a cancellation does not cut short."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_ResultT = TypeVar("_ResultT")


async def to_the_end(coroutine: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Run a coroutine to its end; the caller's cancellation is raised after it."""
    return await ended(asyncio.ensure_future(coroutine))


async def ended(
    work: asyncio.Future[_ResultT],
    interrupt: Callable[[], None] | None = None,
    every_s: float = 0.1,
) -> _ResultT:
    """Wait until a future is done, whether or not the caller is cancelled meanwhile.

    Args:
        work: What is waited for.
        interrupt: Called again and again from the cancellation until then.
        every_s: How often, in seconds.

    Raises:
        asyncio.CancelledError: The caller was cancelled; the result is dropped.
    """
    cancelled_with: tuple[Any, ...] | None = None
    while not work.done():
        # Again and again: who works may be about to begin what can be interrupted.
        if cancelled_with is not None and interrupt is not None:
            interrupt()
        pause_s = None if cancelled_with is None or interrupt is None else every_s
        try:
            await asyncio.wait((work,), timeout=pause_s)
        except asyncio.CancelledError as exc:
            cancelled_with = exc.args
    if cancelled_with is None:
        return work.result()
    if not work.cancelled():
        work.exception()  # the caller hears of the cancellation instead
    raise asyncio.CancelledError(*cancelled_with)


def raise_first(outcomes: list[object]) -> None:
    """Raise the first exception among what `asyncio.gather` returned."""
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
