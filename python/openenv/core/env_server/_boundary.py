"""The one place where foreign code is called.

Whatever an environment, a factory or a model of its author raises, even
``SystemExit``, becomes `EnvironmentFault`: its text and type name for the wire,
the exception itself as ``__cause__`` for the log.  Cancellation that we asked for
passes through.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakSet

from openenv.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")

_cancelled: WeakSet[asyncio.Task[Any]] = WeakSet()  # on the environment loop only


def call(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call foreign code.

    Raises:
        EnvironmentFault: it raised; the environment's fault.
    """
    try:
        return function(*args, **kwargs)
    except BaseException as error:
        raise fault(error) from error


async def call_async(
    function: Callable[_P, Awaitable[_T]], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call and await foreign code.

    Raises:
        EnvironmentFault: it raised; the environment's fault.
        asyncio.CancelledError: the task was cancelled by `cancel`.
    """
    try:
        return await function(*args, **kwargs)
    except asyncio.CancelledError as error:
        if asyncio.current_task() in _cancelled:
            raise
        raise fault(error) from error
    except BaseException as error:
        raise fault(error) from error


def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task; by this `call_async` tells our cancellation from the author's."""
    _cancelled.add(task)
    task.cancel()


def fault(error: BaseException) -> EnvironmentFault:
    """Describe an exception of foreign code; the text is never empty."""
    name = type(error).__name__
    return EnvironmentFault(_text(error) or name, name)


def _text(error: BaseException) -> str:
    """Return the exception's text, empty when even that fails."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - a foreign __str__ may raise anything
        return ""
