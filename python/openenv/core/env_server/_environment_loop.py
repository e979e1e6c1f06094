"""The environment loop: a thread with an event loop for asynchronous environments.

Their ``reset_async``, ``step_async``, ``state`` and ``close`` run here and never on
the I/O loop, so that a coroutine that blocks delays other environments at worst,
never health checks, pings or accepts.  Work comes in and results go out in batches,
one wake-up a batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from openenv.core.env_server import _boundary
from openenv.core.env_server._executor import Pool
from openenv.core.env_server._mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


HELPER_THREADS = 32  # for `reset` of environments whose `step` alone is async

_CANCELLED = "the environment's work was cancelled"

_log = logging.getLogger(__name__)


class Errand:
    """One coroutine to run on the environment loop."""

    __slots__ = ("_mailbox", "_task", "finished", "function", "future")

    def __init__(
        self, function: Callable[[], Coroutine[Any, Any, object]], mailbox: Mailbox
    ) -> None:
        self.function: Callable[[], Coroutine[Any, Any, object]] = function
        self.finished: bool = False
        self.future: asyncio.Future[Any] = mailbox.loop.create_future()
        self._mailbox = mailbox
        self._task: asyncio.Task[None] | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the coroutine; called on the environment loop."""
        self._task = loop.create_task(self._run())
        self._task.add_done_callback(self._ended)

    async def stop(self, timeout_s: float) -> bool:
        """Cancel the coroutine and wait until it has ended.

        Called on the environment loop, which took `begin` before.

        Returns:
            Whether it ended in time.
        """
        if self._task is None or self._task.done():
            return True
        _boundary.cancel(self._task)
        done, _ = await asyncio.wait({self._task}, timeout=timeout_s)
        return bool(done)

    async def _run(self) -> None:
        value: object = None
        error: BaseException | None = None
        try:
            value = await self.function()
        except asyncio.CancelledError:
            error = RuntimeError(_CANCELLED)
        except BaseException as raised:  # noqa: BLE001 - it is the future's to carry
            error = raised
        self.finished = True
        self._mailbox.post(self.future, value, error)

    def _ended(self, _task: asyncio.Task[None]) -> None:
        """Answer for a task that was cancelled before it began."""
        if not self.finished:
            self.finished = True
            self._mailbox.post(self.future, None, RuntimeError(_CANCELLED))


class EnvironmentLoop:
    """The thread and its loop; started with the first errand."""

    def __init__(self) -> None:
        self._helpers: Pool | None = None
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: deque[Callable[[asyncio.AbstractEventLoop], None]] = deque()
        self._signalled = False

    def submit(
        self, function: Callable[[], Coroutine[Any, Any, object]], mailbox: Mailbox
    ) -> Errand:
        """Run a coroutine here; the errand's future gets its result there."""
        errand = Errand(function, mailbox)
        self._call(errand.begin)
        return errand

    async def run_blocking(self, function: Callable[[], object]) -> object:
        """Run a function that may block on a helper thread; called on this loop."""
        if self._helpers is None:
            mailbox = Mailbox(asyncio.get_running_loop())
            self._helpers = Pool(mailbox, max_threads=HELPER_THREADS)
        lane = self._helpers.lane()
        job = lane.submit(function)
        try:
            return await asyncio.shield(job.future)
        except asyncio.CancelledError:
            if not job.claim():  # it runs and cannot be stopped
                await asyncio.wait({job.future})
            raise
        finally:
            lane.release()

    def close(self) -> None:
        """End the thread; what still runs is cancelled."""
        with self._lock:
            loop, self._loop = self._loop, None
            helpers, self._helpers = self._helpers, None
        if helpers is not None:
            helpers.close()
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has just ended by itself
                loop.call_soon_threadsafe(loop.stop)

    def _call(self, function: Callable[[asyncio.AbstractEventLoop], None]) -> None:
        self._calls.append(function)
        # As in `Mailbox.post`: a wake-up too many is harmless.
        if self._signalled:
            return
        self._signalled = True
        self._running().call_soon_threadsafe(self._take_calls)

    def _take_calls(self) -> None:
        self._signalled = False
        loop = asyncio.get_running_loop()
        while self._calls:
            self._calls.popleft()(loop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = new_event_loop()
                threading.Thread(
                    target=self._run,
                    args=(self._loop,),
                    name="openenv-env-loop",
                    daemon=True,
                ).start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until `close`, whoever else ends it; the thread's main."""
        asyncio.set_event_loop(loop)
        while self._loop is loop:
            _turn(loop)
            if self._loop is loop:
                _log.error("an environment's task tried to end the environment loop")
        for task in asyncio.all_tasks(loop):
            _boundary.cancel(task)
        loop.call_soon(loop.stop)
        _turn(loop)
        loop.close()


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until somebody ends it."""
    with contextlib.suppress(BaseException):  # a task of user code raised SystemExit
        loop.run_forever()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Make a uvloop loop, an asyncio one where uvloop is missing (Windows)."""
    try:
        import uvloop  # noqa: PLC0415 - not installed everywhere
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
