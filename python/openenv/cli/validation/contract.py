"""Checks of a running server: episodes are played through its WebSocket.

The rules are upstream's and those of training jobs: the same seed plays the same
episode, a reward is a finite number, the state counts the steps and keeps the episode's
id, an episode that is done stays done, and two sessions share nothing.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from openenv.cli.validation.checks import Check, Fault, NotApplicable
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from openenv.errors import CapacityReached, OpenEnvError, ServerError
from openenv.rollout.errors import InvalidRollout
from openenv.rollout.tools import compile_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.sync_client import SyncEnvClient

    Draw = Callable[[random.Random], dict[str, Any]]
    Session = SyncEnvClient[Any, Any, Any]

SEED: Final = 7
OTHER_SEED: Final = 8
# Long enough to end an episode of a small game, short enough to take seconds.
MAX_STEPS: Final = 200
COMPARED_STEPS: Final = 20
EPISODE_ID: Final = "validate-1"


@dataclass
class Stage:
    """A running server, and how to play on it.

    `concurrent` tells whether the server says that sessions are independent; None where
    only trying tells. `calls_tools` tells whether the actions are calls of tools.
    `seconds` is how long one answer may take. `typed` makes the client's own action of
    a drawn one.
    """

    url: str
    draw: Draw
    concurrent: bool | None = None
    calls_tools: bool = False
    reward_range: tuple[float, float] = (-math.inf, math.inf)
    seconds: float = 30.0
    client_class: type[EnvClient[Any, Any, Any]] | None = None
    typed: Callable[[dict[str, Any]], Any] = dict
    alone: list[dict[str, Any]] = field(default_factory=list)

    def session(
        self, cls: type[EnvClient[Any, Any, Any]] = GenericEnvClient
    ) -> Session:
        """Make a client; opened where it is entered."""
        return cls(self.url, message_timeout_s=self.seconds).sync()


def _tools(stage: Stage) -> None:
    """Draw calls that the tools can take: a name drawn at random names no tool."""
    if not stage.calls_tools:
        raise NotApplicable("the actions are no calls of tools")
    with _told("tools/list"), stage.session(MCPToolClient) as session:
        try:
            tools = session.list_tools()
        except RuntimeError as error:
            raise NotApplicable(f"the tools cannot be listed: {error}") from None
    try:
        stage.draw = compile_calls(tools)
    except InvalidRollout:
        why = "there is no tool whose calls can be drawn"
        raise NotApplicable(why, blocks=True) from None


def _reset(stage: Stage) -> None:
    with _told("reset()"), stage.session() as session:
        result = session.reset(seed=SEED, episode_id=EPISODE_ID)
    if result.done:
        raise Fault("reset() returned an observation that is done", "return done=False")


def _step(stage: Stage) -> None:
    with stage.session() as session:
        with _told("reset()"):
            session.reset(seed=SEED)
        action = stage.draw(_actions_of(SEED))
        with _told(f"step({action})"):
            session.step(action)


def _state(stage: Stage) -> None:
    with stage.session() as session:
        session.reset(seed=SEED)
        with _told("state()"):
            session.state()


def _episode_id(stage: Stage) -> None:
    with stage.session() as session:
        for wanted in (EPISODE_ID, "validate-2"):
            session.reset(seed=SEED, episode_id=wanted)
            found = session.state().get("episode_id")
            if found != wanted:
                raise Fault(
                    f"reset(episode_id={wanted!r}) was called, but state.episode_id "
                    f"is {found!r}",
                    "put the id that reset() is given into the state",
                )


def _step_count(stage: Stage) -> None:
    with stage.session() as session:
        for _ in range(2):
            result, steps = session.reset(seed=SEED), 0
            rng = _actions_of(SEED)
            _expect_count(session, steps)
            while steps < COMPARED_STEPS and not result.done:
                result, steps = session.step(stage.draw(rng)), steps + 1
                _expect_count(session, steps)


def _expect_count(session: Session, steps: int) -> None:
    found = session.state().get("step_count")
    if found != steps:
        after = f"after {steps} steps" if steps else "after reset()"
        raise Fault(
            f"state.step_count is {found!r} {after}",
            "count each step() once, and start from 0 in reset()",
        )


def _reward(stage: Stage) -> None:
    low, high = stage.reward_range
    with stage.session() as session:
        for number, result in enumerate(_play(stage, session, SEED, MAX_STEPS)):
            reward = result.reward
            if reward is None:
                continue
            if not math.isfinite(reward):
                raise Fault(
                    f"the reward of step {number} is {reward}",
                    "return a finite number, or None where there is none",
                )
            if not low <= reward <= high and number:
                raise Fault(
                    f"the reward of step {number} is {reward}, the manifest's range is "
                    f"[{low:g}, {high:g}]",
                    "mend the reward, or validation.reward.range",
                )


def _seed(stage: Stage) -> None:
    stage.alone = _trace(stage, SEED)
    again = _trace(stage, SEED)
    difference = _difference(stage.alone, again)
    if difference:
        raise Fault(
            f"two episodes of seed {SEED} with the same actions differ: {difference}",
            "draw all that is random from random.Random(seed), made in reset()",
        )


def _done(stage: Stage) -> None:
    with stage.session() as session:
        results = list(_play(stage, session, SEED, MAX_STEPS))
        if not results[-1].done:
            raise NotApplicable(f"no episode ended within {MAX_STEPS} random steps")
        action = stage.draw(_actions_of(SEED))
        try:
            after = session.step(action)
        except ServerError:
            after = None
        if after is not None and not after.done:
            raise Fault(
                "step() after the end of an episode goes on with done=False",
                "raise an error, or return done=True, until reset() is called",
            )
        if session.reset(seed=OTHER_SEED).done:
            raise Fault(
                "reset() after the end of an episode returns done=True",
                "forget the old episode in reset()",
            )


def _sessions(stage: Stage) -> None:
    if stage.concurrent is False:
        raise NotApplicable("the environment does not support concurrent sessions")
    with stage.session() as first, stage.session() as second:
        try:
            traces = _interleaved(stage, first, second)
        except CapacityReached:
            raise NotApplicable("the server takes one session at a time") from None
        counts = [session.state().get("step_count") for session in (first, second)]
    difference = _difference(stage.alone, traces[0])
    mend = (
        "keep what an episode needs in the instance, not in the class or the module; "
        "or set SUPPORTS_CONCURRENT_SESSIONS = False"
    )
    if difference:
        why = "a session plays differently while another one plays beside it"
        raise Fault(f"{why}: {difference}", mend)
    wanted = [len(trace) - 1 for trace in traces]
    if counts != wanted:
        why = f"two sessions took {wanted} steps, their states count {counts}"
        raise Fault(why, mend)


def _client(stage: Stage) -> None:
    if stage.client_class is None:
        raise NotApplicable("there is no client to try")
    mend = "let the client's models be those of the server, and its hooks agree"
    with (
        _told("the client's own code", mend),
        stage.session(stage.client_class) as mine,
    ):
        raw = stage.alone[0]
        result = mine.reset(seed=SEED)
        _expect_equal("reward", raw["reward"], result.reward)
        rng = _actions_of(SEED)
        for expected in stage.alone[1:]:
            result = mine.step(stage.typed(stage.draw(rng)))
            _expect_equal("reward", expected["reward"], result.reward)
            _expect_equal("done", expected["done"], result.done)
        mine.state()


CONTRACT_CHECKS: Final[tuple[Check[Stage], ...]] = (
    Check("contract.tools", _tools, ("types.drawable",)),
    Check("contract.reset", _reset, ("contract.tools",)),
    Check("contract.step", _step, ("contract.reset",)),
    Check("contract.state", _state, ("contract.reset",)),
    Check("contract.episode_id", _episode_id, ("contract.state",)),
    Check("contract.step_count", _step_count, ("contract.step", "contract.state")),
    Check("contract.reward", _reward, ("contract.step",)),
    Check("contract.done", _done, ("contract.reward",)),
    Check("contract.seed", _seed, ("contract.reward",)),
    Check("contract.sessions", _sessions, ("contract.seed", "contract.step_count")),
    Check(
        "contract.client", _client, ("contract.seed", "contract.state", "types.client")
    ),
)


class _told:  # noqa: N801 - reads as a sentence where it is used
    """Turn what a call of a client raises into a fault."""

    def __init__(self, what: str, mend: str = "see the server's log") -> None:
        self._what = what
        self._mend = mend

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Fault | NotApplicable) or not isinstance(error, Exception):
            return
        name = type(error).__name__
        # One of ours is a sentence; what a client's hook raises needs its name.
        text = str(error) if isinstance(error, OpenEnvError) else f"{name}: {error}"
        raise Fault(f"{self._what} failed: {text}", self._mend) from None


def _actions_of(seed: int) -> random.Random:
    # Not the generator that an environment makes of the seed: its first number may be
    # what the first action should guess.
    return random.Random(f"actions of {seed}")


def _play(
    stage: Stage, session: Session, seed: int, limit: int
) -> Iterator[StepResult[Any]]:
    result, rng = session.reset(seed=seed), _actions_of(seed)
    yield result
    for _ in range(limit):
        if result.done:
            return
        result = session.step(stage.draw(rng))
        yield result


def _trace(stage: Stage, seed: int) -> list[dict[str, Any]]:
    with stage.session() as session:
        played = _play(stage, session, seed, COMPARED_STEPS)
        return [_record(result) for result in played]


def _interleaved(
    stage: Stage, first: Session, second: Session
) -> list[list[dict[str, Any]]]:
    plays = [
        _play(stage, first, SEED, COMPARED_STEPS),
        _play(stage, second, OTHER_SEED, COMPARED_STEPS),
    ]
    traces: list[list[dict[str, Any]]] = [[], []]
    running = {0, 1}
    while running:
        for number in sorted(running):
            result = next(plays[number], None)
            if result is None:
                running.discard(number)
            else:
                traces[number].append(_record(result))
    return traces


def _record(result: StepResult[Any]) -> dict[str, Any]:
    return {
        "observation": result.observation,
        "reward": result.reward,
        "done": result.done,
    }


def _difference(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> str:
    """Name the first step and field in which two episodes differ."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        where = f"step {number}" if number else "reset()"
        for key in ("reward", "done"):
            if left[key] != right[key]:
                return f"{key} of {where} is {left[key]!r} and {right[key]!r}"
        if left["observation"] != right["observation"]:
            return f"{_field(left['observation'], right['observation'])} of {where}"
    if len(one) != len(other):
        return f"one has {len(one) - 1} steps, the other {len(other) - 1}"
    return ""


def _field(left: Any, right: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left:
            if left[key] != right.get(key):
                return f"the field {key}"
    return "the observation"


def _expect_equal(what: str, sent: object, parsed: object) -> None:
    if sent != parsed:
        raise Fault(
            f"the server sends {what} {sent!r}, the client tells {parsed!r}",
            "let the client's _parse_result hand on reward and done",
        )
