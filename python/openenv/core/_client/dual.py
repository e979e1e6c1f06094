"""Methods that may be awaited or simply called: inside a running loop, and outside."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
from typing import TYPE_CHECKING, Final, TypeVar, cast

from openenv.core._client.io_thread import run_in_background

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from typing import Any

_ResultT = TypeVar("_ResultT")

# Documented; says that there is none without raising.
running_loop: Final[Callable[[], asyncio.AbstractEventLoop | None]] = (
    asyncio._get_running_loop  # noqa: SLF001
)


def now_or_later(coroutine: Coroutine[Any, Any, _ResultT]) -> Awaitable[_ResultT]:
    """Return the coroutine inside a loop; outside, run it and return its result.

    The result is typed as what awaiting callers see (``DEVIATIONS.md`` 25).

    Raises:
        RuntimeError: As `refuse_trio`.
    """
    if running_loop() is not None:
        return coroutine
    try:
        refuse_trio()
    except RuntimeError:
        coroutine.close()
        raise
    return cast("Awaitable[_ResultT]", run_in_background(coroutine))


async def awaited(result: object) -> Any:  # noqa: ANN401 - what it is awaited for
    """Return a result that may have to be awaited first."""
    return await result if inspect.isawaitable(result) else result


@contextlib.contextmanager
def outside_of_loops() -> Iterator[None]:
    """Have the block see no running loop; the one of this thread stands still."""
    loop = running_loop()
    asyncio._set_running_loop(None)  # noqa: SLF001 - documented
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)  # noqa: SLF001 - documented


def refuse_trio() -> None:
    """Refuse to block another library's event loop under a caller who wants to await.

    Raises:
        RuntimeError: Trio, say, runs in this thread.
    """
    # Which library runs is told by sniffio, which trio and anyio bring along.
    sniffio = sys.modules.get("sniffio")
    library = getattr(getattr(sniffio, "thread_local", None), "name", None)
    if library not in {None, "asyncio"}:
        msg = (
            f"OpenEnv's client can be awaited under asyncio, not under {library}; "
            "run its blocking face, client.sync(), in a thread "
            "(trio.to_thread.run_sync), or use trio-asyncio"
        )
        raise RuntimeError(msg)
