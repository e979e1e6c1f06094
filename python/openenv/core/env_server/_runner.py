"""Where one session's environment runs: a pool thread or the environment loop.

Both runners build, call and close the environment in its own place, one thing at a
time; `close` runs ``env.close()`` exactly once, behind whatever still runs there.
They are used from the I/O loop and touch the environment nowhere else.
"""

from __future__ import annotations

import inspect
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from openenv.core.env_server import _boundary
from openenv.core.env_server._hosted import Hosted
from openenv.errors import EnvironmentFactoryError, EnvironmentFault

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from openenv.core.env_server._environment_loop import EnvironmentLoop, Errand
    from openenv.core.env_server._executor import Job, Lane, Pool
    from openenv.core.env_server._mailbox import Mailbox

CLOSE_TIMEOUT_S = 30.0  # then nobody waits for an env.close() any more
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
        self._abandoned = False

    async def build(self) -> Hosted:
        """Construct the environment, on a pool thread whatever it is.

        Raises:
            EnvironmentFactoryError: the factory raised; ``__cause__`` tells what.
        """
        self._job = self._lane.submit(self._build)
        hosted: Hosted = await self._job.future
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
        return job is not None and not job.finished and not job.claim()

    def close(self, *, abandoned: bool = False) -> asyncio.Future[None]:
        """Cancel what is under way, then close the environment.

        Call once, after `withdraw`.  A step that runs on a thread cannot be
        stopped: closing waits for it.

        Args:
            abandoned: whether new sessions may come while this one still runs, so
                that its thread must not count against theirs until `release`.

        Returns:
            Resolved when ``env.close()`` has returned or raised.
        """
        self._abandoned = abandoned
        self._pool.abandoned_lanes += abandoned
        if self.hosted is not None and self.hosted.is_async:
            return self._environment_loop.submit(
                self._close_async, self._mailbox
            ).future
        return self._lane.submit(self._close).future

    def release(self) -> None:
        """Give the thread up; once, after `close`."""
        self._pool.abandoned_lanes -= self._abandoned
        self._lane.release()

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

    def _close(self) -> None:
        if self.hosted is not None:
            _close_quietly(self.hosted)

    async def _close_async(self) -> None:
        if self._errand is not None and not await self._errand.stop(CANCEL_S):
            _log.warning("a cancelled step did not end within %g s", CANCEL_S)
        result = _close_quietly(self._built())
        if inspect.isawaitable(result):
            try:
                await _boundary.call_async(lambda: result)
            except EnvironmentFault as fault:
                _log_close(fault)


def factory_name(factory: Callable[[], Any]) -> str:
    """Return the name a factory has on the wire (upstream: ``__name__`` or text)."""
    return str(getattr(factory, "__name__", factory))


def _close_quietly(hosted: Hosted) -> object:
    """Call ``env.close()``; what it raises is logged."""
    close = getattr(hosted.environment, "close", None)
    if close is None:
        return None
    try:
        return _boundary.call(close)
    except EnvironmentFault as fault:
        _log_close(fault)
        return None


def _log_close(fault: EnvironmentFault) -> None:
    _log.warning("env.close() raised %s", fault, exc_info=fault.__cause__)
