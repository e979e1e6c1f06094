"""Where one session's environment runs: a pool thread or the environment loop.

Both runners build, call and close the environment in its own place, one thing at a
time; `close` runs ``env.close()`` exactly once, behind whatever still runs there.
They are used from the I/O loop and touch the environment nowhere else.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from openenv.core.env_server import _boundary
from openenv.core.env_server._hosted import Hosted
from openenv.errors import (
    EnvironmentFactoryError,
    EnvironmentFault,
    SessionCapacityError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from openenv.core.env_server._environment_loop import EnvironmentLoop, Errand
    from openenv.core.env_server._executor import Job, Lane, Pool
    from openenv.core.env_server._mailbox import Mailbox

CLOSE_TIMEOUT_S = 10.0  # then an env.close() hangs: nobody waits for it any more
CANCEL_S = 10.0  # time a cancelled coroutine has to end before its env.close()

_log = logging.getLogger(__name__)


class Runner:
    """Runs one environment, built by ``factory``.

    Args:
        factory: environment class or function.
        pool: threads of synchronous environments.
        environment_loop: loop of asynchronous ones.
        mailbox: brings results to the I/O loop.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        pool: Pool,
        environment_loop: EnvironmentLoop,
        mailbox: Mailbox,
    ) -> None:
        self.hosted: Hosted | None = None
        self._factory = factory
        self._pool = pool
        self._lane: Lane = pool.lane()
        self._environment_loop = environment_loop
        self._mailbox = mailbox
        self._job: Job | None = None
        self._errand: Errand | None = None
        self._spare = False

    async def build(self, begin_s: float | None = None) -> Hosted:
        """Construct the environment, on a pool thread whatever it is.

        Args:
            begin_s: how long to wait for a thread.

        Raises:
            EnvironmentFactoryError: the factory raised; ``__cause__`` tells what.
            SessionCapacityError: no thread was free in time; nothing is built.
        """
        job = self._job = self._lane.submit(self._build)
        if begin_s is not None:
            await asyncio.wait({job.future}, timeout=begin_s)
            if job.claim():
                self._job = None
                raise _no_thread(self._pool.max_threads)
        hosted: Hosted = await job.future
        if hosted.is_async:
            self._lane.release()
        return hosted

    def start(
        self,
        function: Callable[[Hosted], Any],
        coroutine: Callable[[Hosted], Coroutine[Any, Any, Any]],
    ) -> asyncio.Future[Any]:
        """Run one of the two where the environment lives.

        Args:
            function: what to do with a synchronous environment.
            coroutine: the same for an asynchronous one.

        Returns:
            A future of the I/O loop.  Cancelling it does not stop what runs;
            `close` does where it can be done.
        """
        hosted = self._built()
        if hosted.is_async:
            self._errand = self._environment_loop.submit(
                partial(coroutine, hosted), self._mailbox
            )
            return self._errand.future
        self._job = self._lane.submit(partial(function, hosted))
        return self._job.future

    def withdraw(self) -> bool:
        """Take back a job that still waits for its thread.

        Returns:
            Whether something runs on, because its caller was cancelled.
        """
        if self._errand is not None:
            return not self._errand.finished
        job = self._job
        if job is None or job.finished or _answered(job):
            return False
        return not job.claim()

    def close(self, *, spare: bool = False) -> asyncio.Future[None]:
        """Cancel what is under way, then close the environment.

        Call once, after `withdraw`.  A step that runs on a thread cannot be
        stopped: closing waits for it.

        Args:
            spare: whether new sessions may come while this one still runs, so
                that its thread must not count against theirs until `release`.

        Returns:
            Resolved when ``env.close()`` has returned or raised.
        """
        self._spare = spare
        self._pool.abandoned_lanes += spare
        return asyncio.get_running_loop().create_task(self._closing())

    def release(self) -> None:
        """Give the thread up; once, after `close`."""
        self._pool.abandoned_lanes -= self._spare
        self._lane.release()

    async def _closing(self) -> None:
        """Close where the environment runs; what has to be awaited, on the loop."""
        if self._job is None:
            return  # never built
        if self.hosted is None or not self.hosted.is_async:
            rest = await self._lane.submit(self._close).future
        else:
            rest = self._close_async
        if rest is not None:
            await self._environment_loop.submit(rest, self._mailbox).future

    def _built(self) -> Hosted:
        if self.hosted is None:
            msg = "start() before build()"
            raise RuntimeError(msg)
        return self.hosted

    # -- on the environment's thread or loop ---------------------------------------

    def _build(self) -> Hosted:
        try:
            environment = _boundary.call(self._factory)
            run_blocking = self._environment_loop.run_blocking
            self.hosted = _boundary.call(Hosted, environment, run_blocking)
        except EnvironmentFault as fault:
            raise EnvironmentFactoryError(factory_name(self._factory)) from fault
        return self.hosted

    def _close(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """Close; return what is left to be done on the environment loop."""
        if self.hosted is None:
            return None
        if self.hosted.is_async:  # its client vanished while it was constructed
            return self._close_async
        result = _close_quietly(self.hosted.environment)
        return partial(_await_close, result) if inspect.isawaitable(result) else None

    async def _close_async(self) -> None:
        if self._errand is not None and not await self._errand.stop(CANCEL_S):
            _log.warning("a cancelled step did not end within %g s", CANCEL_S)
        result = _close_quietly(self._built().environment)
        if inspect.isawaitable(result):
            await _await_close(result)


def factory_name(factory: Callable[[], Any]) -> str:
    """Return the name a factory has on the wire (upstream: ``__name__`` or text)."""
    return str(getattr(factory, "__name__", factory))


def _no_thread(threads: int) -> SessionCapacityError:
    message = f"Server at capacity: running requests hold all {threads} threads."
    return SessionCapacityError(threads, threads, message)


def close_unserved(environment: Any) -> None:
    """Close an environment that was made without a server; returns when done."""
    result = _close_quietly(environment)
    if inspect.isawaitable(result):  # the caller's thread may run a loop
        closing = _await_close(result)
        thread = threading.Thread(target=asyncio.run, args=(closing,), daemon=True)
        thread.start()
        thread.join()


def _answered(job: Job) -> bool:
    """Tell whether the job has ended, also on another thread it was moved to."""
    return job.future.done() and not job.future.cancelled()


def _close_quietly(environment: Any) -> object:
    """Call ``env.close()``; what it raises is logged."""
    close = getattr(environment, "close", None)
    if close is None:
        return None
    try:
        return _boundary.call(close)
    except EnvironmentFault as fault:
        _log_close(fault)
        return None


async def _await_close(result: Awaitable[object]) -> None:
    try:
        await _boundary.call_async(lambda: result)
    except EnvironmentFault as fault:
        _log_close(fault)


def _log_close(fault: EnvironmentFault) -> None:
    _log.warning("env.close() raised %s", fault, exc_info=fault.__cause__)
