from __future__ import annotations

import asyncio
import collections
import gc
import math
import time
import weakref

import pytest

from openenv.core._client.timers import LoopTimers, timers_of


class Member:
    """Want to be ticked at the times given, one after the other."""

    def __init__(self, *times):
        self.due = math.inf
        self.times = list(times)
        self.ticks = []
        self.done = asyncio.Event()
        self.left = self.aborted = False

    def tick(self, now):
        self.ticks.append(now)
        if not self.times:
            self.done.set()
            return math.inf
        return self.times.pop(0)

    def leave(self):
        self.left = True
        return asyncio.get_running_loop().create_future()

    def abort(self):
        self.aborted = True


@pytest.fixture
async def timers():
    return timers_of(asyncio.get_running_loop())


async def wait(member):
    await asyncio.wait_for(member.done.wait(), 5)


async def test_a_loop_has_one_set_of_timers(timers):
    assert timers is timers_of(asyncio.get_running_loop())


async def test_a_member_is_ticked_at_its_times_and_not_before(timers):
    now = asyncio.get_running_loop().time()
    member = Member(now + 0.04, now + 0.06)
    timers.arm(member, now + 0.02)
    await wait(member)

    assert 3 == len(member.ticks)
    assert [True] * 3 == [
        tick >= now + due
        for tick, due in zip(member.ticks, (0.02, 0.04, 0.06), strict=True)
    ]
    assert math.inf == member.due


async def test_an_earlier_time_overtakes_and_a_later_one_changes_nothing(timers):
    now = asyncio.get_running_loop().time()
    member = Member()
    timers.arm(member, now + 60)
    timers.arm(member, now + 0.02)
    timers.arm(member, now + 30)
    await wait(member)

    assert 1 == len(member.ticks)


async def test_many_members_share_one_timer_of_the_loop(monkeypatch):
    loop = asyncio.get_running_loop()
    timers = LoopTimers(loop)
    armed = []
    set_handle = timers._set_handle
    monkeypatch.setattr(
        timers, "_set_handle", lambda when: armed.append(when) or set_handle(when)
    )
    now = loop.time()
    members = [Member() for _ in range(100)]
    for number, member in enumerate(members):
        timers.arm(member, now + 0.02 + number / 1e6)
    first = len(armed)
    await asyncio.gather(*map(wait, members))

    assert 1 == first
    assert {1} == {len(member.ticks) for member in members}


async def test_after_a_blocked_loop_sockets_are_read_before_time_is_called_over(timers):
    loop = asyncio.get_running_loop()
    member = Member()
    timers.arm(member, loop.time() + 0.01)
    read = []
    loop.call_later(0.5, read.append, "socket")
    time.sleep(0.6)  # noqa: ASYNC251 - the loop is blocked on purpose
    await wait(member)

    assert ["socket"] == read


def test_the_end_of_a_loop_is_told_to_its_members():
    async def main():
        member = Member()
        timers_of(asyncio.get_running_loop()).add(member)
        return member

    member = asyncio.run(main())

    assert (True, True) == (member.left, member.aborted)


def test_ended_loops_are_not_kept():
    async def main():
        loop = asyncio.get_running_loop()
        timers_of(loop).arm(Member(), loop.time() + 60)
        return weakref.ref(loop)

    first = asyncio.run(main())
    asyncio.run(main())
    gc.collect()

    assert first() is None


class Failing(Member):
    """Fail at everything that it is called for."""

    def tick(self, now):
        super().tick(now)
        raise RuntimeError("tick")

    def leave(self):
        super().leave()
        raise RuntimeError("leave")

    def abort(self):
        super().abort()
        raise RuntimeError("abort")


def test_members_that_fail_to_leave_do_not_keep_the_others_from_it():
    told = []

    async def main(members):
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        timers = timers_of(loop)
        for member in members:
            timers.add(member)

    members = [kind() for kind in (Failing, Member) * 5]
    asyncio.run(main(members))

    assert [(True, True)] * 10 == [(m.left, m.aborted) for m in members]
    assert {"leave": 5, "abort": 5} == collections.Counter(map(str, told))


async def test_a_tick_that_fails_ends_its_member_and_no_other(timers):
    told = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, context: told.append(str(context["exception"]))
    )
    failing, other = Failing(), Member()
    now = loop.time()
    timers.arm(failing, now + 0.01)
    timers.arm(other, now + 0.02)
    await wait(other)

    assert (1, True) == (len(failing.ticks), failing.aborted)
    assert ["tick", "abort"] == told
