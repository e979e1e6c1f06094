"""What a server runs environments with, for one I/O loop.

An app usually lives on one loop.  Test clients make a new one a request, so a server
keeps a `Runtime` for each and drops those whose loop is closed.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openenv.core.env_server._environment_loop import EnvironmentLoop
from openenv.core.env_server._executor import BASE_THREADS, Pool
from openenv.core.env_server._mailbox import Mailbox
from openenv.core.env_server._runner import CLOSE_TIMEOUT_S, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from openenv.core.env_server._hosted import Hosted

ONE_SHOT_THREADS = 32  # for HTTP requests without a session (upstream's pool)
ONE_SHOT_WAIT_S = 4.0  # for one of them; HTTP clients give up soon (httpx: 5 s)


@dataclass(frozen=True, slots=True)
class ThreadLimits:
    """How many threads environments get.

    Attributes:
        sessions: most threads for sessions, one each.
        single: whether all instances must share one thread.
        dedicated: whether no two sessions may share a thread.
    """

    sessions: int
    single: bool
    dedicated: bool = False


class Runtime:
    """Threads and mailbox of one loop.

    Args:
        loop: the I/O loop.
        factory: makes environments.
        environment_loop: the server's loop of asynchronous environments.
        limits: how many threads.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        factory: Callable[[], Any],
        environment_loop: EnvironmentLoop,
        limits: ThreadLimits,
    ) -> None:
        self.loop = loop
        self._factory = factory
        self._environment_loop = environment_loop
        self._mailbox = Mailbox(loop)
        self._sessions = Pool(
            self._mailbox,
            max_threads=1 if limits.single else limits.sessions,
            base_threads=limits.sessions if limits.dedicated else BASE_THREADS,
            fixed=limits.single,
        )
        self._one_shots = (
            self._sessions
            if limits.single
            else Pool(self._mailbox, max_threads=ONE_SHOT_THREADS)
        )

    def session_runner(self) -> Runner:
        """Make the runner of a session's environment."""
        return self._runner(self._sessions)

    async def one_shot(
        self,
        function: Callable[[Hosted], Any],
        coroutine: Callable[[Hosted], Coroutine[Any, Any, Any]],
    ) -> Any:
        """Build an environment, use it for one thing and close it.

        Raises:
            EnvironmentFactoryError: the factory raised.
            SessionCapacityError: hung requests hold all threads.
        """
        runner = self._runner(self._one_shots)
        try:
            await runner.build(ONE_SHOT_WAIT_S)
            return await runner.start(function, coroutine)
        finally:
            closed = runner.close()
            closed.add_done_callback(lambda _: runner.release())
            await asyncio.wait({closed}, timeout=CLOSE_TIMEOUT_S)

    def close(self) -> None:
        """End the threads."""
        self._sessions.close()
        self._one_shots.close()

    def _runner(self, pool: Pool) -> Runner:
        return Runner(self._factory, pool, self._environment_loop, self._mailbox)


class Runtimes:
    """The runtimes of a server, one a loop.

    Args:
        factory: makes environments.
        limits: how many threads.
    """

    def __init__(self, factory: Callable[[], Any], limits: ThreadLimits) -> None:
        self._factory = factory
        self._limits = limits
        self._environment_loop = EnvironmentLoop()
        self._runtimes: list[Runtime] = []

    def current(self) -> Runtime:
        """Return the runtime of the running loop."""
        loop = asyncio.get_running_loop()
        for runtime in self._runtimes:
            if runtime.loop is loop:
                return runtime
        self._drop_closed()
        runtime = Runtime(loop, self._factory, self._environment_loop, self._limits)
        self._runtimes.append(runtime)
        return runtime

    def close(self) -> None:
        """End all threads."""
        for runtime in self._runtimes:
            runtime.close()
        self._runtimes.clear()
        self._environment_loop.close()

    def _drop_closed(self) -> None:
        for runtime in [r for r in self._runtimes if r.loop.is_closed()]:
            runtime.close()
            self._runtimes.remove(runtime)
