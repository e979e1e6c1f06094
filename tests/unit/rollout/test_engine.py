"""The engine with sessions made up by the test: no socket, no server."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field

import pytest

from openenv.core.client_types import StepResult
from openenv.errors import CapacityReached, ConnectFailed
from openenv.rollout import engine as engine_module
from openenv.rollout.engine import Engine, Plan, episode_seed
from openenv.rollout.errors import OutputFailed


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(engine_module, "OPENING_PAUSES_S", (0.0, 0.0))


@dataclass
class World:
    """What all made-up sessions share; hooks decide how they behave."""

    length: int = 3
    reward: object = 1.0
    open_now: int = 0
    most_open: int = 0
    seeds: list[int] = field(default_factory=list)
    connects: int = 0
    refuse_connect: object = None
    refuse_reset: object = None
    on_step: object = None

    def make(self):
        return MadeUpSession(self)


class MadeUpSession:
    def __init__(self, world):
        self.world, self.left, self.opened = world, 0, False

    async def connect(self):
        self.world.connects += 1
        if self.world.refuse_connect:
            self.world.refuse_connect(self.world.connects)
        self.opened = True
        self.world.open_now += 1
        self.world.most_open = max(self.world.most_open, self.world.open_now)

    async def reset(self, **kwargs):
        await asyncio.sleep(0)
        if self.world.refuse_reset:
            self.world.refuse_reset(kwargs["seed"])
        self.world.seeds.append(kwargs["seed"])
        self.left = self.world.length
        return StepResult({"left": self.left}, None, False)

    async def step(self, action):
        await asyncio.sleep(0)
        if self.world.on_step:
            outcome = self.world.on_step(self, action)
            if outcome is not None:
                await outcome
        self.left -= 1
        return StepResult({"left": self.left}, self.world.reward, self.left == 0)

    async def close(self):
        if self.opened:
            self.opened = False
            self.world.open_now -= 1


def choose(_observation, episode):
    return episode.step


def make_engine(world, records, *, policy=choose, on_record=None, **plan):
    plan = {"sessions": 4, "episodes": 10, "seed": 1, **plan}
    return Engine(Plan(**plan), world.make, policy, on_record or records.append)


async def play(world, **options):
    records = []
    engine = make_engine(world, records, **options)
    await engine.run()
    return engine.tally, records


async def test_each_episode_is_played_once_and_summed():
    world = World()

    tally, records = await play(world)

    assert sorted(record.episode for record in records) == list(range(10))
    assert {(r.steps, r.reward, r.done, r.truncated) for r in records} == {
        (3, 3.0, True, False)
    }
    assert (tally.finished, tally.failed, tally.steps) == (10, 0, 30)
    assert tally.mean_reward == 3.0
    assert world.open_now == 0


async def test_all_sessions_are_open_before_the_first_step():
    world = World()
    open_at_steps = []
    world.on_step = lambda *_: open_at_steps.append(world.open_now)

    tally, _ = await play(world, sessions=20, episodes=20)

    assert open_at_steps[0] == 20
    assert tally.peak_sessions == 20


async def test_no_more_sessions_than_episodes_are_opened():
    world = World()

    await play(world, sessions=50, episodes=3)

    assert world.connects == 3


async def test_episode_seeds_depend_only_on_seed_and_number():
    first, second = World(), World()

    _, one = await play(first, sessions=1)
    _, many = await play(second, sessions=7)

    def by_number(records):
        return {record.episode: record.seed for record in records}

    assert by_number(one) == by_number(many)
    assert by_number(one) == {n: episode_seed(1, n) for n in range(10)}
    assert len(set(by_number(one).values())) == 10


async def test_policy_gets_the_episodes_own_generator():
    drawn = []

    def draw(_observation, episode):
        if episode.step == 0:
            drawn.append((episode.number, episode.rng.random()))
        return 0

    await play(World(), policy=draw)
    first, drawn[:] = dict(drawn), []
    await play(World(), policy=draw, sessions=1)

    assert first == dict(drawn)


async def test_max_steps_truncates():
    _, records = await play(World(length=100), max_steps=5)

    assert {(r.steps, r.done, r.truncated) for r in records} == {(5, False, True)}


async def test_coroutine_policy_is_awaited():
    async def think(_observation, episode):
        await asyncio.sleep(0)
        return episode.step

    tally, _ = await play(World(), policy=think)

    assert (tally.finished, tally.failed) == (10, 0)


async def test_missing_and_boolean_rewards_add_up():
    _, (nothing,) = await play(World(reward=None), episodes=1)
    _, (truth,) = await play(World(reward=True), episodes=1)

    assert (nothing.reward, truth.reward) == (0.0, 3.0)


async def test_failed_episode_is_counted_by_reason_and_the_session_goes_on():
    def clumsy(_observation, episode):
        if episode.number == 2 and episode.step == 1:
            raise KeyError("lost")
        return 0

    tally, records = await play(World(), policy=clumsy, sessions=1)

    (failed,) = (record for record in records if record.error)
    assert (failed.episode, failed.steps) == (2, 1)
    assert (failed.done, failed.truncated) == (False, False)
    assert failed.error.type == "KeyError"
    assert re.fullmatch(r"'lost' \(test_engine\.py:\d+\)", failed.error.message)
    assert (tally.finished, tally.failed, tally.not_run) == (10, 1, 0)
    assert dict(tally.reasons) == {"KeyError": 1}
    assert [record.episode for record in records] == list(range(10))


async def test_failing_reset_fails_only_its_episode():
    world = World()
    bad = episode_seed(1, 4)

    def refuse(seed):
        if seed == bad:
            raise RuntimeError("no such level")

    world.refuse_reset = refuse

    tally, _ = await play(world)

    assert dict(tally.reasons) == {"RuntimeError": 1}
    assert tally.succeeded == 9


async def test_refused_connection_is_tried_again():
    world = World()

    def refuse(count):
        if count == 1:
            raise ConnectFailed("not yet")

    world.refuse_connect = refuse

    tally, _ = await play(world, sessions=1)

    assert (tally.succeeded, tally.refused) == (10, {})


async def test_sessions_that_cannot_be_opened_leave_their_episodes_to_the_others():
    world = World()

    def only_the_first(count):
        if count > 1:
            raise CapacityReached("full")

    world.refuse_connect = only_the_first

    tally, _ = await play(world)

    assert (tally.succeeded, tally.failed) == (10, 0)
    assert dict(tally.refused) == {"CapacityReached": 3}


async def test_capacity_refused_by_the_first_reset_gives_the_episode_back():
    world = World()
    players = []

    class Limited(MadeUpSession):
        async def reset(self, **kwargs):
            if self not in players and len(players) == 1:
                raise CapacityReached("full")
            if self not in players:
                players.append(self)
            return await super().reset(**kwargs)

    world.make = lambda: Limited(world)

    tally, records = await play(world)

    assert (tally.succeeded, tally.failed) == (10, 0)
    assert len({record.session for record in records}) == 1
    assert dict(tally.refused) == {"CapacityReached": 3}


async def test_without_any_session_nothing_is_run():
    world = World()

    def refuse(_count):
        raise ConnectFailed("nobody there")

    world.refuse_connect = refuse

    tally, records = await play(world)

    assert records == []
    assert (tally.finished, tally.not_run) == (0, 10)
    assert dict(tally.refused) == {"ConnectFailed": 4}
    assert tally.examples["ConnectFailed"] == "nobody there"


async def test_stop_ends_after_the_episodes_in_play():
    records, world = [], World()
    engine = make_engine(world, records, sessions=2, episodes=1000)
    world.on_step = lambda *_: engine.stop() if engine.tally.steps == 10 else None

    await engine.run()

    assert 0 < engine.tally.finished < 10
    assert engine.tally.not_run == 1000 - engine.tally.finished
    assert world.open_now == 0


async def test_failing_sink_ends_the_rollout_and_closes_the_sessions():
    world = World()

    def full(_record):
        raise OutputFailed("disk full")

    engine = make_engine(world, [], on_record=full)

    with pytest.raises(OutputFailed, match="disk full"):
        await engine.run()
    assert world.open_now == 0


async def test_cancelled_rollout_keeps_what_is_done_and_closes_the_sessions():
    records, world, reached = [], World(), asyncio.Event()

    def hang_later(_session, _action):
        if len(records) >= 4:
            reached.set()
            return asyncio.Event().wait()
        return None

    world.on_step = hang_later
    task = asyncio.create_task(make_engine(world, records).run())
    async with asyncio.timeout(10):
        await reached.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(records) >= 4
    assert world.open_now == 0


async def test_session_that_never_closes_does_not_hold_the_rollout(monkeypatch):
    monkeypatch.setattr(engine_module, "CLOSE_TIMEOUT_S", 0.01)
    world = World()

    class Stuck(MadeUpSession):
        async def close(self):
            await asyncio.Event().wait()

    world.make = lambda: Stuck(world)

    tally, _ = await play(world)

    assert tally.succeeded == 10


@pytest.mark.parametrize("action", [None, "up", 3, [("direction", "up")]])
@pytest.mark.parametrize("failure", [TypeError("no"), AttributeError("no .direction")])
async def test_what_is_no_action_is_the_policys_fault(action, failure):
    def refuse(_session, _action):
        raise failure

    _, records = await play(World(on_step=refuse), policy=lambda *_: action, episodes=1)

    assert records[0].error.type == "NotAnAction"
    assert records[0].error.message.startswith(
        f"the policy returned {action!r}, which is no action: return a dict"
    )


async def test_a_client_may_take_text_as_an_action():
    _, records = await play(World(), policy=lambda *_: "up", episodes=1)

    assert records[0].error is None


@pytest.mark.parametrize("action", [{"direction": "up"}, World()])
async def test_a_fault_with_a_right_action_is_told_as_it_is(action):
    def refuse(_session, _action):
        raise TypeError("a bug of the client")

    _, records = await play(World(on_step=refuse), policy=lambda *_: action, episodes=1)

    assert records[0].error.type == "TypeError"
