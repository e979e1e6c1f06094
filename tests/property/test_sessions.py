"""The registry of sessions keeps its counts in any order of opening and ending.

Real threads and a real environment loop serve the sessions. What may take its time (a
constructor, a step, ``close``) waits at a gate, so that after every rule it is known
what runs and the counts can be predicted.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from unittest import mock

from hypothesis import Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from openenv.core.env_server import _sessions
from openenv.core.env_server._environment_loop import EnvironmentLoop
from openenv.core.env_server._executor import Pool
from openenv.core.env_server._mailbox import Mailbox
from openenv.core.env_server._runner import Runner
from openenv.core.env_server._sessions import Sessions
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import ConcurrencyConfig
from openenv.errors import EnvironmentFactoryError, SessionCapacityError

WAIT_S = 20.0
TIMEOUT_S = 60.0  # of a session; its clock is moved by hand

BUILDS = st.sampled_from(["good", "good", "slow", "raises", "exits"])
KINDS = st.tuples(BUILDS, st.booleans(), st.booleans())
PICK = st.integers(0, 100)


class Watched(Sessions):
    """Check the count at every change, not only between rules."""

    @property
    def _slots(self):
        return self._count

    @_slots.setter
    def _slots(self, count):
        assert 0 <= count <= self.config.max_concurrent_envs
        self._count = count

    def end(self, session):
        self.last_end = super().end(session)
        return self.last_end


class Living:
    """How many environments live, and how many did at most."""

    def __init__(self):
        self._lock = threading.Lock()
        self.now = self.most = 0

    def change(self, by):
        with self._lock:
            self.now += by
            self.most = max(self.most, self.now)


class Plan:
    """One client's environment and its gates, which the test opens."""

    def __init__(self, build="good", *, hangs=False, is_async=False):
        self.build, self.hangs, self.is_async = build, hangs, is_async
        self.constructing, self.constructed = threading.Event(), threading.Event()
        self.stepping, self.stepped = threading.Event(), threading.Event()
        self.closed = threading.Event()
        self.opening = self.session = self.step = self.end = None

    def open_gates(self):
        for gate in (self.constructed, self.stepped, self.closed):
            gate.set()

    def calls(self):
        """Give what a step does, on a thread or on the environment loop."""
        self.stepping.clear()
        self.stepped.clear()

        def function(_hosted):
            self.stepping.set()
            assert self.stepped.wait(WAIT_S)

        async def coroutine(_hosted):
            self.stepping.set()
            await until(self.stepped.is_set)

        return function, coroutine


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - other threads make it true
            await asyncio.sleep(0.0005)


class Sync(Environment):
    def __init__(self, plan, living):
        super().__init__()
        self.plan, self.living = plan, living
        plan.constructing.set()
        if plan.build == "slow":
            assert plan.constructed.wait(WAIT_S)
        elif plan.build == "raises":
            raise ValueError("no environment today")
        elif plan.build == "exits":
            raise SystemExit(3)
        living.change(1)

    def reset(self):
        raise NotImplementedError

    def step(self, action):
        raise NotImplementedError

    @property
    def state(self):
        raise NotImplementedError

    def close(self):
        assert not self.plan.hangs or self.plan.closed.wait(WAIT_S)
        self.living.change(-1)
        raise RuntimeError("close() raises, too")


class Async(Sync):
    async def step_async(self, action):
        raise NotImplementedError

    async def close(self):
        if self.plan.hangs:
            await until(self.plan.closed.is_set)
        self.living.change(-1)


def is_building(plan):
    return plan.session is None


def is_open(plan):
    return plan.session is not None


def is_busy(plan):
    return plan.step is not None


def is_idle(plan):
    return is_open(plan) and not is_busy(plan)


def closes_at_once(plan):
    return is_idle(plan) and not plan.hangs


def having(condition):
    """Let a rule apply where a session is as ``condition`` says."""
    return precondition(lambda self: self.found(condition))


class Registry(RuleBasedStateMachine):
    concurrent = True

    @initialize(capacity=st.integers(1, 4), max_abandoned=st.integers(0, 3))
    def start(self, capacity, max_abandoned):
        self.capacity = capacity if self.concurrent else 1
        self.max_abandoned = max_abandoned
        config = ConcurrencyConfig(
            max_concurrent_envs=self.capacity,
            session_timeout=TIMEOUT_S,
            max_abandoned_sessions=max_abandoned,
        )
        self.loop = asyncio.new_event_loop()
        self.mailbox = Mailbox(self.loop)
        self.pool = Pool(self.mailbox, max_threads=32)
        self.environment_loop = EnvironmentLoop()
        self.sessions = Watched(config, concurrent=self.concurrent)
        self.living = Living()
        self.plans = []  # those that got a slot
        self.held = set()  # those that hold it for an open session
        self.ending = set()  # those whose session ended and whose close() is not over
        self.abandoned = set()

    # -- rules -------------------------------------------------------------------

    @rule(kinds=st.lists(KINDS, min_size=1, max_size=4))
    def several_open_at_once(self, kinds):
        plans = [Plan(build, hangs=h, is_async=a) for build, h, a in kinds]
        free = self.free
        with mock.patch.object(_sessions, "SLOT_GRACE_S", 0.01):  # what hangs, hangs
            self.run(self.open(plans))
        for plan in plans[free:]:
            assert isinstance(plan.opening.exception(), SessionCapacityError)
        for plan in plans[:free]:
            if plan.build in {"raises", "exits"}:
                assert isinstance(plan.opening.exception(), EnvironmentFactoryError)
            else:
                self.admitted(plan)

    @having(is_building)
    @rule(pick=PICK)
    def a_slow_constructor_returns(self, pick):
        plan = self.pick(pick, is_building)
        plan.constructed.set()
        plan.session = self.run(plan.opening)

    @having(is_building)
    @rule(pick=PICK)
    def a_client_vanishes_during_construction(self, pick):
        plan = self.pick(pick, is_building)
        plan.opening.cancel()
        self.run(asyncio.wait({plan.opening}))
        self.ended(plan, outlived=True)

    @having(is_idle)
    @rule(pick=PICK)
    def a_step_begins(self, pick):
        plan = self.pick(pick, is_idle)
        plan.step = self.loop.create_task(plan.session.run(*plan.calls()))
        self.run(until(plan.stepping.is_set))

    @having(is_busy)
    @rule(pick=PICK)
    def a_step_ends(self, pick):
        plan = self.pick(pick, is_busy)
        plan.stepped.set()
        self.run(plan.step)
        plan.step = None

    @having(is_busy)
    @rule(pick=PICK)
    def a_client_vanishes_during_a_step(self, pick):
        plan = self.pick(pick, is_busy)
        self.run(self.cancel_step(plan))
        self.run(self.end(plan))
        self.ended(plan, outlived=True, stopped=plan.is_async)

    @having(is_idle)
    @rule(pick=PICK)
    def a_session_ends(self, pick):
        plan = self.pick(pick, is_idle)
        self.run(self.end(plan))
        self.ended(plan)

    @having(is_open)
    @rule(pick=PICK)
    def a_session_that_is_idle_expires(self, pick):
        plan = self.pick(pick, is_open)
        assert is_idle(plan) == self.run(self.expires(plan.session))
        if is_idle(plan):
            self.run(self.end(plan))
            self.ended(plan)

    @having(closes_at_once)
    @rule(pick=PICK, count=st.integers(1, 3))
    def others_come_while_a_session_closes(self, pick, count):
        plan = self.pick(pick, closes_at_once)
        too_many_abandoned = len(self.abandoned) > self.max_abandoned
        free = 0 if too_many_abandoned else self.free + 1
        others = [Plan() for _ in range(count)]
        with mock.patch.object(_sessions, "SLOT_GRACE_S", WAIT_S):
            self.run(self.end_and_open(plan, others))
        self.ended(plan)
        won = [other for other in others if other.opening.exception() is None]
        assert min(free, count) == len(won)
        for other in won:
            self.admitted(other)

    @precondition(lambda self: self.ending)
    @rule(pick=PICK)
    def what_hung_comes_to_its_end(self, pick):
        hung = [plan for plan in self.plans if plan in self.ending]
        plan = hung[pick % len(hung)]
        plan.open_gates()
        self.run(plan.end)
        self.ending.remove(plan)
        self.abandoned.discard(plan)

    @invariant()
    def counts_are_those_of_the_model(self):
        status = self.sessions.capacity()

        assert len(self.slots) == self.sessions.active == status.active_sessions
        assert self.capacity - len(self.slots) == status.available_slots
        assert len(self.abandoned) == self.sessions.abandoned
        assert self.pool.abandoned_lanes == self.concurrent * len(self.ending)
        assert self.concurrent or self.living.most <= 1

    def teardown(self):
        self.run(self.finish())
        self.pool.close()
        self.environment_loop.close()
        self.loop.close()

        assert 0 == self.sessions.active
        assert 0 == self.sessions.abandoned
        assert 0 == self.living.now

    # -- the model ---------------------------------------------------------------

    @property
    def slots(self):
        return self.held if self.concurrent else self.held | self.ending

    @property
    def free(self):
        too_many_abandoned = len(self.abandoned) > self.max_abandoned
        return 0 if too_many_abandoned else self.capacity - len(self.slots)

    def found(self, condition):
        return [plan for plan in self.plans if plan in self.held and condition(plan)]

    def pick(self, number, condition):
        found = self.found(condition)
        return found[number % len(found)]

    def admitted(self, plan):
        self.plans.append(plan)
        self.held.add(plan)
        if plan.build == "good":
            plan.session = plan.opening.result()

    def ended(self, plan, *, outlived=False, stopped=False):
        """Note that a session ended, in a request that may have been stopped."""
        self.held.remove(plan)
        plan.end = self.sessions.last_end
        if plan.hangs or (outlived and not stopped):
            self.ending.add(plan)
            if outlived and self.concurrent:
                self.abandoned.add(plan)
        else:
            self.run(plan.end)

    # -- what is done on the loop --------------------------------------------------

    def run(self, awaitable):
        async def in_time():
            async with asyncio.timeout(WAIT_S):
                return await awaitable

        return self.loop.run_until_complete(in_time())

    async def open(self, plans):
        """Open all at once; return when each is refused, open or under construction."""
        for plan in plans:
            make_runner = functools.partial(self.runner, plan)
            plan.opening = self.loop.create_task(self.sessions.open(make_runner))
        for plan in plans:
            waits = plan.constructing if plan.build == "slow" else threading.Event()
            await until(lambda p=plan, w=waits: p.opening.done() or w.is_set())

    def runner(self, plan):
        kind = Async if plan.is_async else Sync
        factory = functools.partial(kind, plan, self.living)
        return Runner(factory, self.pool, self.environment_loop, self.mailbox)

    async def end(self, plan):
        self.sessions.end(plan.session)

    async def end_and_open(self, plan, others):
        self.sessions.end(plan.session)
        await self.open(others)

    async def cancel_step(self, plan):
        plan.step.cancel()
        await asyncio.wait({plan.step})
        plan.step = None

    async def expires(self, session):
        """Let a session's clock run for more than its timeout; tell whether it ends."""
        calls = []
        session._active_s -= 2 * TIMEOUT_S
        session.watch(lambda: calls.append(session))
        session.unwatch()
        return bool(calls)

    async def finish(self):
        for plan in self.plans:
            plan.open_gates()
        for plan in self.held:
            session = await plan.opening
            if plan.step:
                await plan.step
            plan.end = self.sessions.end(session)
        for plan in self.plans:
            await plan.end


class SingleRegistry(Registry):
    """Of a class that allows no concurrent sessions."""

    concurrent = False


Registry.TestCase.settings = SingleRegistry.TestCase.settings = settings(
    max_examples=50,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    # To shrink a failure with real threads takes longer than a test may.
    phases=[Phase.explicit, Phase.generate],
)
TestRegistry = Registry.TestCase
TestSingleRegistry = SingleRegistry.TestCase
