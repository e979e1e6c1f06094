"""Cleaning up that a cancellation does not cut short."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

_ResultT = TypeVar("_ResultT")


async def to_the_end(coroutine: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Run a coroutine to its end; the caller's cancellation is raised after it."""
    return await ended(asyncio.ensure_future(coroutine))


async def ended(work: asyncio.Future[_ResultT]) -> _ResultT:
    """Wait until a future is done, whether or not the caller is cancelled meanwhile.

    Raises:
        asyncio.CancelledError: The caller was cancelled; the result is dropped.
    """
    cancelled_with: tuple[Any, ...] | None = None
    while not work.done():
        try:
            await asyncio.wait((work,))
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
