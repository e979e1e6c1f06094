"""The pool: pinning, order, moving, shrinking and bounds."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from openenv.core.env_server import _executor
from openenv.core.env_server._environment_loop import EnvironmentLoop
from openenv.core.env_server._executor import Pool
from openenv.core.env_server._mailbox import Mailbox
from openenv.core.env_server._runner import Runner
from openenv.errors import EnvironmentFault


@contextmanager
def pool(**options):
    options = {"max_threads": 8, **options}
    made = Pool(Mailbox(asyncio.get_running_loop()), **options)
    try:
        yield made
    finally:
        made.close()


def blocker():
    """Make a job that waits, the event that it runs, and the one that ends it."""
    entered, leave = threading.Event(), threading.Event()

    def function():
        entered.set()
        assert leave.wait(20)
        return threading.get_ident()

    return function, entered, leave


async def until(condition, timeout_s=5.0):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        await asyncio.sleep(0.001)


@pytest.fixture
def calm(monkeypatch):
    """Let every check find a process with time to spare."""
    monkeypatch.setattr(
        "openenv.core.env_server._pressure.Pressure.sample", lambda *_: True
    )


@pytest.fixture
def starved(monkeypatch):
    """Let every check find a process without time to spare."""
    monkeypatch.setattr(
        "openenv.core.env_server._pressure.Pressure.sample", lambda *_: False
    )


async def test_a_jobs_future_gets_what_it_returns_or_raises():
    def fail():
        raise KeyError("k")

    with pool() as made:
        lane = made.lane()

        assert 7 == await lane.submit(lambda: 7).future
        with pytest.raises(KeyError):
            await lane.submit(fail).future


async def test_even_system_exit_leaves_the_thread_alive():
    with pool(max_threads=1) as made:
        lane = made.lane()
        with pytest.raises(EnvironmentFault, match="SystemExit"):
            await lane.submit(sys.exit).future
        with pytest.raises(EnvironmentFault, match="StopIteration"):
            await lane.submit(lambda: next(iter(()))).future

        assert 1 == await lane.submit(lambda: 1).future


async def test_lanes_up_to_the_base_have_a_thread_each_and_keep_it():
    with pool(max_threads=8, base_threads=3) as made:
        lanes = [made.lane() for _ in range(3)]
        rounds = [
            [await lane.submit(threading.get_ident).future for lane in lanes]
            for _ in range(3)
        ]

    assert 3 == len(set(rounds[0]))
    assert [rounds[0]] * 3 == rounds


async def test_further_lanes_share_the_least_loaded_thread():
    with pool(max_threads=8, base_threads=2) as made:
        lanes = [made.lane() for _ in range(6)]
        threads = [await lane.submit(threading.get_ident).future for lane in lanes]

    assert 2 == len(set(threads))
    assert {3} == {threads.count(thread) for thread in threads}


async def test_a_released_lane_leaves_its_thread_to_the_next():
    with pool(max_threads=8, base_threads=2) as made:
        for _ in range(5):
            lane = made.lane()
            await lane.submit(int).future
            lane.release()

        assert 1 == made.threads


async def test_jobs_of_a_lane_run_in_order_and_never_at_once():
    running, order = [], []

    def job(number):
        assert not running
        running.append(number)
        time.sleep(0.001)
        order.append(running.pop())

    with pool() as made:
        lane = made.lane()
        jobs = [lane.submit(lambda n=number: job(n)) for number in range(50)]
        await asyncio.gather(*(job.future for job in jobs))

    assert list(range(50)) == order


@pytest.mark.usefixtures("calm")
async def test_jobs_behind_another_lanes_blocked_job_move_all_at_once():
    with pool(max_threads=16, base_threads=1) as made:
        function, entered, leave = blocker()
        lanes = [made.lane() for _ in range(9)]
        blocked = lanes[0].submit(function)
        await until(entered.is_set)
        start = time.monotonic()
        others = [lane.submit(threading.get_ident) for lane in lanes[1:]]
        threads = await asyncio.gather(*(job.future for job in others))
        took_s = time.monotonic() - start
        leave.set()
        await blocked.future

    assert took_s >= _executor.MOVE_AFTER_S
    assert took_s < 2
    assert blocked.future.result() not in threads


@pytest.mark.usefixtures("calm")
async def test_a_lanes_own_next_job_never_overtakes_its_running_one():
    with pool(max_threads=8, base_threads=1) as made:
        function, entered, leave = blocker()
        lane = made.lane()
        first = lane.submit(function)
        await until(entered.is_set)
        second = lane.submit(threading.get_ident)
        await asyncio.sleep(4 * _executor.MOVE_AFTER_S)
        assert not second.claimed
        leave.set()

        assert await first.future == await second.future


@pytest.mark.usefixtures("starved")
async def test_a_starved_process_grows_no_threads():
    def short():
        time.sleep(0.005)

    with pool(max_threads=64, base_threads=2) as made:
        lanes = [made.lane() for _ in range(20)]
        await asyncio.gather(*(lane.submit(short).future for lane in lanes))

        assert 2 == made.threads


@pytest.mark.usefixtures("starved")
async def test_even_a_starved_process_moves_jobs_from_a_stuck_thread(monkeypatch):
    monkeypatch.setattr(_executor, "STUCK_AFTER_S", 0.05)
    with pool(max_threads=64, base_threads=1) as made:
        function, entered, leave = blocker()
        stuck = made.lane().submit(function)
        await until(entered.is_set)
        other = made.lane().submit(lambda: "moved")

        assert "moved" == await asyncio.wait_for(other.future, 5)
        leave.set()
        await stuck.future


@pytest.mark.usefixtures("calm")
async def test_threads_never_exceed_the_limit_but_by_abandoned_lanes():
    with pool(max_threads=2, base_threads=2) as made:
        functions = [blocker() for _ in range(2)]
        jobs = [made.lane().submit(function) for function, _, _ in functions]
        for _, entered, _ in functions:
            await until(entered.is_set)
        waiting = made.lane().submit(lambda: "ran")
        await asyncio.sleep(4 * _executor.MOVE_AFTER_S)
        assert (2, False) == (made.threads, waiting.claimed)
        made.abandoned_lanes += 1

        assert "ran" == await asyncio.wait_for(waiting.future, 5)
        assert 3 == made.threads
        for _, _, leave in functions:
            leave.set()
        await asyncio.gather(*(job.future for job in jobs))


@pytest.mark.usefixtures("calm")
async def test_without_a_thread_left_jobs_wait_and_the_watchdog_goes_on(
    monkeypatch, caplog
):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with pool(max_threads=4, base_threads=4) as made:
        function, entered, leave = blocker()
        first = made.lane().submit(function)
        await until(entered.is_set)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        second = made.lane().submit(lambda: "second")
        await asyncio.sleep(4 * _executor.MOVE_AFTER_S)
        assert not second.claimed
        monkeypatch.undo()

        assert "second" == await asyncio.wait_for(second.future, 5)
        leave.set()
        await first.future
    assert "no further thread" in caplog.text


async def test_the_first_job_without_a_thread_fails(monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pool() as made, pytest.raises(RuntimeError, match="no thread left"):
        made.lane().submit(int)


@pytest.mark.usefixtures("calm")
async def test_a_fixed_pool_neither_grows_nor_shrinks():
    with pool(max_threads=1, idle_s=0.02, fixed=True) as made:
        made.abandoned_lanes += 1
        lane = made.lane()
        first = await lane.submit(threading.get_ident).future
        lane.release()
        await asyncio.sleep(0.1)

        assert first == await made.lane().submit(threading.get_ident).future
        assert 1 == made.threads


async def test_idle_threads_end_and_their_lanes_find_another():
    with pool(max_threads=4, base_threads=1, idle_s=0.02) as made:
        base, extra = made.lane(), made.lane()
        kept = await base.submit(threading.get_ident).future
        with made._lock:
            made._pin(extra, made._spawn())
        await extra.submit(int).future
        await until(lambda: made.threads == 1)

        assert extra.worker is None
        assert kept == await extra.submit(threading.get_ident).future


async def test_a_withdrawn_job_is_never_run():
    ran = []
    with pool(max_threads=1) as made:
        function, entered, leave = blocker()
        blocked = made.lane().submit(function)
        await until(entered.is_set)
        job = made.lane().submit(lambda: ran.append(1))

        assert job.claim()
        assert not job.claim()
        leave.set()
        await blocked.future
        await made.lane().submit(int).future
        assert [] == ran


async def test_results_come_back_in_batches_with_one_wake_up_each():
    loop = asyncio.get_running_loop()
    mailbox = Mailbox(loop)
    wake_ups = 0

    class Counting:
        def call_soon_threadsafe(self, function):
            nonlocal wake_ups
            wake_ups += 1
            return loop.call_soon_threadsafe(function)

    mailbox.loop = Counting()
    futures = [loop.create_future() for _ in range(100)]

    def post_all():
        for number, future in enumerate(futures):
            mailbox.post(future, number)

    thread = threading.Thread(target=post_all)
    thread.start()
    thread.join()  # the loop is not run meanwhile, so all wait for one wake-up

    assert list(range(100)) == await asyncio.gather(*futures)
    assert 1 == wake_ups


async def test_a_result_for_a_closed_loop_is_dropped():
    closed = asyncio.new_event_loop()
    future = closed.create_future()
    closed.close()
    Mailbox(closed).post(future, 1)

    assert not future.done()


@pytest.mark.usefixtures("calm")
async def test_a_request_answered_on_another_thread_does_not_count_as_running():
    blocks, entered, leave = blocker()
    with pool(base_threads=1, max_threads=2) as made:

        def runner():
            return Runner(object, made, EnvironmentLoop(), made.mailbox)

        stuck, moved = runner(), runner()
        await stuck.build()
        await moved.build()
        waits = stuck.start(lambda _: blocks(), None)
        await until(entered.is_set)
        await moved.start(lambda _: None, None)
        running = stuck.withdraw(), moved.withdraw()
        leave.set()
        await waits

    assert (True, False) == running
