"""Checks of a running server: episodes are played through its WebSocket.

The rules are upstream's and those of training jobs: the same seed plays the same
episode, a reward is a finite number, the state counts the steps and keeps the episode's
id, an episode that is done stays done, and two sessions share nothing.
"""

from __future__ import annotations

import math
import reprlib
from typing import Any, Final

from openenv.cli.validation.checks import Check, Fault, NotApplicable, Verdict
from openenv.cli.validation.playing import (
    COMPARED_STEPS,
    CallFailed,
    Session,
    Stage,
    actions_of,
    play,
    record,
    told,
    trace,
)
from openenv.core.mcp_client import MCPToolClient
from openenv.errors import CapacityReached, ServerError
from openenv.rollout.errors import InvalidRollout
from openenv.rollout.tools import compile_calls

SEED: Final = 7
OTHER_SEED: Final = 8
# Long enough to end an episode of a small game, short enough to take seconds.
MAX_STEPS: Final = 200
EPISODE_ID: Final = "validate-1"
_SHARED: Final = (
    "keep what an episode needs in the instance, not in the class or the module"
)


def _tools(stage: Stage) -> None:
    """Draw calls that the tools can take: a name drawn at random names no tool."""
    if not stage.calls_tools:
        raise NotApplicable("the actions are no calls of tools")
    with told(stage, "tools/list"), stage.session(MCPToolClient) as session:
        try:
            tools = session.client.list_tools()
        except RuntimeError as error:
            raise NotApplicable(f"the tools cannot be listed: {error}") from None
    try:
        stage.draw = compile_calls(tools)
    except InvalidRollout:
        why = "there is no tool whose calls can be drawn"
        raise NotApplicable(why, blocks=True) from None


def _reset(stage: Stage) -> None:
    with stage.session() as session:
        for _ in range(2):
            if session.reset(seed=SEED, episode_id=EPISODE_ID).done:
                why = "reset() returned an observation that is done"
                raise Fault(why, "return done=False")


def _step(stage: Stage) -> None:
    """Play a whole episode, so that what later steps raise is blamed on them."""
    with stage.session() as session:
        stage.episode = list(play(stage, session, SEED, MAX_STEPS))
        session.reset(seed=SEED)


def _state(stage: Stage) -> None:
    with stage.session() as session:
        for _ in play(stage, session, SEED, COMPARED_STEPS):
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
            rng = actions_of(SEED)
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
    for number, result in enumerate(stage.episode):
        reward = result.reward
        if reward is None:
            continue
        if not _is_finite(reward):
            raise Fault(
                f"the reward of step {number} is {reprlib.repr(reward)}",
                "return a finite number that a float can hold, or None where there is "
                "none",
            )
        if not low <= reward <= high and number:
            raise Fault(
                f"the reward of step {number} is {reward}, the manifest's range is "
                f"[{low:g}, {high:g}]",
                "mend the reward, or validation.reward.range",
            )


def _is_finite(reward: object) -> bool:
    try:
        return isinstance(reward, int | float) and math.isfinite(reward)
    except OverflowError:  # an integer beyond all floats
        return False


def _seed(stage: Stage) -> None:
    stage.alone = trace(stage, SEED)
    difference = _difference(stage.alone, trace(stage, SEED))
    if not difference:
        return
    if stage.fresh is not None and _agree(stage.fresh(), stage.fresh()):
        # The seed is kept; what differs is what earlier episodes left behind.
        stage.leak = difference
        return
    mend = "draw all that is random from random.Random(seed), made in reset()"
    if stage.fresh is None:
        mend = f"{mend}; {_SHARED}"
    why = f"two episodes of seed {SEED} with the same actions differ: {difference}"
    raise Fault(why, mend)


def _agree(one: str, other: str) -> bool:
    return bool(one) and one == other


def _done(stage: Stage) -> None:
    with stage.session() as session:
        results = list(play(stage, session, SEED, MAX_STEPS))
        if not results[-1].done:
            why = f"no episode ended within {MAX_STEPS} random steps"
            if stage.calls_tools:  # who calls tools ends the episode
                raise NotApplicable(why)
            mend = "return done=True at its end; a game may count steps and give up"
            raise Fault(why, mend, Verdict.WARN)
        action = stage.draw(actions_of(SEED))
        try:
            after = session.step(action)
        except CallFailed as failed:
            if not isinstance(failed.error, ServerError):
                raise
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
    if stage.leak:
        why = f"an episode plays differently after other sessions: {stage.leak}"
        raise Fault(why, f"{_SHARED}: something outlives its session")
    if stage.concurrent is False:
        raise NotApplicable("the environment does not support concurrent sessions")
    with stage.session() as first, stage.session() as second:
        try:
            traces = _interleaved(stage, first, second)
        except CallFailed as failed:
            if not isinstance(failed.error, CapacityReached):
                raise
            raise NotApplicable("the server takes one session at a time") from None
        counts = [session.state().get("step_count") for session in (first, second)]
    difference = _difference(stage.alone, traces[0])
    mend = f"{_SHARED}; or set SUPPORTS_CONCURRENT_SESSIONS = False"
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
    with (
        told(stage, "the client's own code"),
        stage.session(stage.client_class) as mine,
    ):
        raw = stage.alone[0]
        result = mine.reset(seed=SEED)
        _expect_equal("reward", raw["reward"], result.reward)
        rng = actions_of(SEED)
        for expected in stage.alone[1:]:
            result = mine.step(stage.typed(stage.draw(rng)))
            _expect_equal("reward", expected["reward"], result.reward)
            _expect_equal("done", expected["done"], result.done)
        mine.state()


CONTRACT_CHECKS: Final[tuple[Check[Stage], ...]] = (
    Check("contract.tools", _tools, ("types.drawable",)),
    Check("contract.reset", _reset, ("contract.tools",)),
    Check("contract.step", _step, ("contract.reset",)),
    Check("contract.state", _state, ("contract.step",)),
    Check("contract.episode_id", _episode_id, ("contract.state",)),
    Check("contract.step_count", _step_count, ("contract.state",)),
    Check("contract.reward", _reward, ("contract.step",)),
    Check("contract.done", _done, ("contract.reward",)),
    Check("contract.seed", _seed, ("contract.reward",)),
    Check("contract.sessions", _sessions, ("contract.seed", "contract.step_count")),
    # What outlives a session is no fault of the client's.
    Check("contract.client", _client, ("contract.sessions", "types.client")),
)


def _interleaved(
    stage: Stage, first: Session, second: Session
) -> list[list[dict[str, Any]]]:
    plays = [
        play(stage, first, SEED, COMPARED_STEPS),
        play(stage, second, OTHER_SEED, COMPARED_STEPS),
    ]
    traces: list[list[dict[str, Any]]] = [[], []]
    running = {0, 1}
    while running:
        for number in sorted(running):
            result = next(plays[number], None)
            if result is None:
                running.discard(number)
            else:
                traces[number].append(record(result))
    return traces


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
