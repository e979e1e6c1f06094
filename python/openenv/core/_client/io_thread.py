"""The process's one background event loop, for callers that block.

The thread is named ``openenv-io``, is started by the first blocking call and serves
all clients of the process until it exits: connections stay alive, and pings are
answered, while callers compute for minutes. It runs uvloop where that is installed.
No event-loop policy and no signal handler is installed.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import importlib.util
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from openenv.core._native import native
from openenv.errors import ConnectionClosed, RequestTimeout

if TYPE_CHECKING:
    from collections.abc import Coroutine

_ResultT = TypeVar("_ResultT")

THREAD_NAME: Final = "openenv-io"
_EXIT_PATIENCE_S: Final = 2.0
_HEARING_S: Final = 0.5
GRACE_S: Final = 0.1  # for the loop that serves a call to tell itself that it is late
_GOING_AWAY: Final = 1001


class IoThread:
    """Own one daemon thread with one running loop."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(ready,), name=THREAD_NAME, daemon=True
        )
        self._thread.start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(ready.set)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(_wind_up())
        finally:
            self.loop.close()

    def stop(self) -> None:
        """Close the connections in order and end the thread, in bounded time."""
        if self.loop.is_closed():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_EXIT_PATIENCE_S)


def io_loop() -> asyncio.AbstractEventLoop:
    """Return the background loop, started by the first call.

    Raises:
        RuntimeError: The interpreter is exiting.
    """
    global _io_thread  # noqa: PLW0603 - one a process is the point of the module
    with _lock:
        if _exiting.is_set():
            raise RuntimeError("the interpreter is exiting, no call can be made")
        if _io_thread is None:
            _io_thread = IoThread()
            atexit.register(_stop_at_exit)
        return _io_thread.loop


def is_io_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether that is the background loop."""
    return _io_thread is not None and _io_thread.loop is loop


def run_in_background(coroutine: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Run a coroutine on the background loop and block for its result.

    Exit handlers that are called after the thread has ended, to close a client say,
    are served by a loop of their own.
    """
    if _exiting.is_set():
        return asyncio.run(coroutine)
    return run_on(io_loop(), coroutine)


def run_on(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, _ResultT],
    late: RequestTimeout | None = None,
) -> _ResultT:
    """Run a coroutine on a loop of another thread and block for its result.

    An exception in the waiting thread, Ctrl-C above all, cancels the coroutine and
    goes on when that has ended, at once as a rule; a start of a provider cleans up
    first. Another Ctrl-C does not wait for it. The client stays usable.

    Args:
        loop: The loop.
        coroutine: Ends in the time that ``late`` tells, unless the loop is blocked.
        late: Raised if it does not; the coroutine is cancelled. None waits for ever.

    Raises:
        RuntimeError: Called on the loop itself, where blocking would never end.
        ConnectionClosed: The interpreter's exit ended the loop under the call.
    """
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        coroutine.close()
        raise RuntimeError(
            "a blocking call was made on the event loop that has to serve it; "
            "await the client's method instead"
        )
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result(None if late is None else late.timeout_s + GRACE_S)
    except TimeoutError:
        if late is not None and future.cancel():
            raise late from None
        return future.result()  # the coroutine's own error
    except concurrent.futures.CancelledError:
        if _exiting.is_set():
            raise ConnectionClosed(_GOING_AWAY, "the interpreter is exiting") from None
        raise
    except BaseException:
        _cancel_and_wait(loop, coroutine)
        raise


def _cancel_and_wait(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, object]
) -> None:
    heard, ended = threading.Event(), threading.Event()

    def cancel() -> None:
        heard.set()
        tasks = [t for t in asyncio.all_tasks(loop) if t.get_coro() is coroutine]
        for task in tasks:
            task.add_done_callback(lambda _: ended.set())
            task.cancel()
        if not tasks:
            ended.set()

    with contextlib.suppress(RuntimeError):  # the loop has been closed
        loop.call_soon_threadsafe(cancel)
        # A loop that is blocked or stopped may never turn again.
        if heard.wait(_HEARING_S):
            while loop.is_running() and not ended.wait(_HEARING_S):
                continue


def is_alive(loop: asyncio.AbstractEventLoop, pid: int) -> bool:
    """Tell whether a loop can serve calls: it runs, and in this process.

    Args:
        loop: The loop.
        pid: The process that used it last; in a forked child its thread is gone.
    """
    return pid == os.getpid() and loop.is_running()


def keep_parents(connection: object) -> None:
    """Keep what belongs to the parent's loop out of the garbage of a forked child.

    Its end would take the socket out of the epoll set that both processes share.
    """
    _parents.append(connection)


def _new_loop() -> asyncio.AbstractEventLoop:
    if importlib.util.find_spec("uvloop") is None or _has_closed_stream():
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 - not installed on Windows

    return uvloop.new_event_loop()


def _has_closed_stream() -> bool:
    # Then the loop's own descriptors are among 0, 1 and 2, which libuv aborts at.
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            return True
    return False


async def _wind_up() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_EXIT_PATIENCE_S / 2)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _stop_at_exit() -> None:
    # A daemon thread that holds Rust frames must not be cut off in finalisation.
    _exiting.set()
    if _io_thread is not None:
        _io_thread.stop()


def _forget_in_child() -> None:
    global _io_thread, _lock  # noqa: PLW0603 - see io_loop
    keep_parents(_io_thread)
    native.forget_entropy()
    _io_thread = None
    _lock = threading.Lock()


_io_thread: IoThread | None = None
_lock = threading.Lock()
_exiting: Final = threading.Event()
_parents: Final[list[object]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
