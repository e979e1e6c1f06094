"""A provider runs one container or process at a time, whoever asks for it."""

# ruff: noqa: ANN401 - a start's arguments are passed on

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from openenv.errors import ProviderError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


class AlreadyRunning(ProviderError):  # noqa: N818 - STYLE 8: named by what happened
    """Report that a start was refused, and what runs was left as it is.

    It may be somebody else's: who hears this has nothing to stop.
    """


class _Starting(Protocol):
    _start_lock: threading.Lock


_StartT = TypeVar("_StartT", bound="Callable[..., str]")


def one_at_a_time(start: _StartT) -> _StartT:
    """Refuse a start while another thread is in one of the same provider.

    It is refused, not held up: the other one's success would be its error.
    """

    @functools.wraps(start)
    def alone(self: _Starting, *args: Any, **kwargs: Any) -> str:
        name = type(self).__name__
        if not self._start_lock.acquire(blocking=False):
            message = f"{name} is already running: another thread starts it"
            raise AlreadyRunning(message, name)
        try:
            return start(self, *args, **kwargs)
        finally:
            self._start_lock.release()

    return cast("_StartT", alone)
