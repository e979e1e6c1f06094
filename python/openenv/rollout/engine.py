"""The engine: N sessions play M episodes, each session one episode at a time.

    numbers 0 … M-1 ──> worker 0 (session 0): reset, step …, record ─┐
                    ──> worker 1 (session 1): reset, step …, record ─┼─> tally, sink
                    ──> …                                            ┘

All sessions are opened before the first episode starts, so that N sessions are really
held at once. A worker takes the next number when its episode has ended. An episode that
fails is recorded with its reason and the worker goes on: `reset` gives a fresh episode,
on a fresh connection where the old one is gone. A session that cannot be opened after a
few tries ends its worker and gives its number back; what nobody could play is not run.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from openenv.errors import CapacityReached, ConnectFailed, OpenEnvError
from openenv.rollout._boundary import Caught, awaited
from openenv.rollout.policy import Episode, refuse_no_action
from openenv.rollout.records import EpisodeError, EpisodeRecord, Tally

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openenv.core.client_types import StepResult
    from openenv.rollout.policy import Policy

# Handshakes at the same time: more would only make each wait for the others while its
# own time limit runs.
MAX_CONCURRENT_OPENINGS: Final = 64
# A slot or a restarting server is back within seconds or not at all.
OPENING_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
CLOSE_TIMEOUT_S: Final = 5.0
# Clean up after Ctrl-C is not worth a long wait.
CANCELLED_CLOSE_TIMEOUT_S: Final = 1.0

ResultT = TypeVar("ResultT")

_NOT_OPENED = (ConnectFailed, CapacityReached)


class Session(Protocol):
    """What the engine needs of a client; `EnvClient` has it.

    `reset` must give a fresh episode in any state, also after a lost connection.
    """

    def connect(self) -> Awaitable[object]:
        """Open the session."""

    def reset(
        self,
        **kwargs: Any,  # noqa: ANN401 - upstream's signature
    ) -> Awaitable[StepResult[Any]]:
        """Start an episode."""

    def step(
        self,
        action: Any,  # noqa: ANN401 - the environment's type
    ) -> Awaitable[StepResult[Any]]:
        """Take an action."""

    def close(self) -> Awaitable[object]:
        """Give the session up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to play: `max_steps` cuts an episode, None leaves that to it."""

    sessions: int
    episodes: int
    seed: int = 0
    max_steps: int | None = None


def episode_seed(seed: int, number: int) -> int:
    """Derive an episode's own seed, 31 bits, the same on every machine."""
    # String seeds go through SHA-512: neighbours have nothing in common.
    return random.Random(f"{seed}/{number}").getrandbits(31)  # noqa: S311 - no secret


class Engine:
    """Play the planned episodes; `tally` can be read at any moment.

    Args:
        plan: how many sessions and episodes.
        make_session: called once a worker, in the loop.
        policy: chooses the actions.
        on_record: called with each ended episode; what it raises ends the rollout.
    """

    def __init__(
        self,
        plan: Plan,
        make_session: Callable[[], Session],
        policy: Policy,
        on_record: Callable[[EpisodeRecord], None],
        tally: Tally | None = None,
    ) -> None:
        self.plan = plan
        self.tally: Tally = tally if tally is not None else Tally(planned=plan.episodes)
        self._make_session = make_session
        self._policy = policy
        self._on_record = on_record
        self._numbers = deque(range(plan.episodes))
        self._openings = asyncio.Semaphore(MAX_CONCURRENT_OPENINGS)
        self._workers = min(plan.sessions, plan.episodes)
        self._unopened = self._workers
        self._all_tried = asyncio.Event()
        self._stopped = False

    async def run(self) -> None:
        """Play until no episode is left, or no session is.

        Raises:
            BaseException: what `on_record` raised; the sessions are closed.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for index in range(self._workers):
                    group.create_task(self._work(index))
        except BaseExceptionGroup as raised:
            # All workers share one sink: the first failure is the failure.
            raise raised.exceptions[0] from None
        finally:
            self.tally.end()

    def stop(self) -> None:
        """Start no further episode; those being played end as they do."""
        self._stopped = True

    async def _work(self, index: int) -> None:
        session = self._make_session()
        try:
            opened = await self._open(session)
            self._unopened -= 1
            if self._unopened == 0:
                self.tally.begin()
                self._all_tried.set()
            if opened:
                await self._all_tried.wait()
                await self._play_all(session, index)
        finally:
            await _close(session)

    async def _open(self, session: Session) -> bool:
        async with self._openings:
            outcome = await self._persistently(session.connect)
        if isinstance(outcome, Caught):
            self.tally.refuse(outcome.error)
            return False
        self.tally.session_opened()
        return True

    async def _play_all(self, session: Session, index: int) -> None:
        try:
            while self._numbers and not self._stopped:
                number = self._numbers.popleft()
                if not await self._play(session, index, number):
                    self._numbers.appendleft(number)
                    return
        finally:
            self.tally.session_closed()

    async def _play(self, session: Session, index: int, number: int) -> bool:
        """Play one episode; False: the session cannot be opened again."""
        seed = episode_seed(self.plan.seed, number)
        # Not the generator that an environment makes of its seed: the first number
        # drawn from that may be what the first action should guess.
        rng = random.Random(f"policy of {seed}")  # noqa: S311 - no secret
        played = _Played(Episode(number, index, seed, rng))
        started = time.monotonic()
        start = await self._persistently(lambda: session.reset(seed=seed))
        if isinstance(start, Caught):
            if isinstance(start.error, _NOT_OPENED):
                self.tally.refuse(start.error)
                return False
            played.error = start.error
        else:
            outcome = await awaited(self._steps(session, start, played))
            if isinstance(outcome, Caught):
                played.error = outcome.error
        record = played.record(time.monotonic() - started)
        self.tally.add(record)
        self._on_record(record)
        return True

    async def _steps(
        self, session: Session, result: StepResult[Any], played: _Played
    ) -> None:
        episode, limit = played.episode, self.plan.max_steps
        played.add(result)
        while not played.done and (limit is None or episode.step < limit):
            action = self._policy(result.observation, episode)
            if inspect.isawaitable(action):
                action = await action
            try:
                result = await session.step(action)
            except (AttributeError, TypeError) as error:
                refuse_no_action(action, error)
                raise
            episode.step += 1
            self.tally.steps += 1
            played.add(result)

    async def _persistently(
        self, attempt: Callable[[], Awaitable[ResultT]]
    ) -> ResultT | Caught:
        """Try again while the server refuses the connection; give up after seconds."""
        outcome = await awaited(attempt())
        for pause_s in OPENING_PAUSES_S:
            refused = isinstance(outcome, Caught) and isinstance(
                outcome.error, _NOT_OPENED
            )
            if not refused or self._stopped:
                break
            await asyncio.sleep(pause_s)
            outcome = await awaited(attempt())
        return outcome


@dataclass(slots=True)
class _Played:
    """One episode while it is played."""

    episode: Episode
    reward: float = 0.0
    done: bool = False
    error: Exception | None = None

    def add(self, result: StepResult[Any]) -> None:
        self.reward += result.reward or 0.0
        self.done = bool(result.done)

    def record(self, duration_s: float) -> EpisodeRecord:
        episode, failed = self.episode, self.error is not None
        return EpisodeRecord(
            episode=episode.number,
            seed=episode.seed,
            session=episode.session,
            steps=episode.step,
            reward=round(self.reward, 6),
            done=self.done and not failed,
            truncated=not self.done and not failed,
            duration_s=round(duration_s, 6),
            error=None if self.error is None else EpisodeError.of(self.error),
        )


async def _close(session: Session) -> None:
    task = asyncio.current_task()
    cancelled = task is not None and task.cancelling() > 0
    timeout_s = CANCELLED_CLOSE_TIMEOUT_S if cancelled else CLOSE_TIMEOUT_S
    # A session that is gone or silent has nothing left to close.
    with suppress(OpenEnvError, OSError):
        async with asyncio.timeout(timeout_s):
            await session.close()
