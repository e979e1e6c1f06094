"""The environment loop: results, cancellation, and tasks that want to end it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from openenv.core.env_server import _boundary
from openenv.core.env_server._environment_loop import EnvironmentLoop
from openenv.core.env_server._mailbox import Mailbox
from openenv.errors import EnvironmentFault


@pytest.fixture
def environment_loop():
    loop = EnvironmentLoop()
    yield loop
    loop.close()


def mailbox():
    return Mailbox(asyncio.get_running_loop())


async def test_errands_run_on_one_other_thread(environment_loop):
    async def where():
        await asyncio.sleep(0)
        return threading.get_ident()

    letters = mailbox()
    futures = [environment_loop.submit(where, letters).future for _ in range(10)]
    threads = set(await asyncio.gather(*futures))

    assert 1 == len(threads)
    assert threading.get_ident() not in threads


async def test_a_stopped_errand_has_ended_and_says_so(environment_loop):
    ended = threading.Event()

    async def wait():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    letters = mailbox()
    errand = environment_loop.submit(wait, letters)
    stopped = await environment_loop.submit(lambda: errand.stop(5), letters).future

    assert stopped
    with pytest.raises(RuntimeError, match="cancelled"):
        await errand.future
    assert errand.finished


async def test_an_errand_that_will_not_end_is_given_up(environment_loop):
    release = threading.Event()

    async def stubborn():
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    letters = mailbox()
    errand = environment_loop.submit(stubborn, letters)
    stopped = await environment_loop.submit(lambda: errand.stop(0.05), letters).future
    release.set()
    await errand.future

    assert not stopped


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_task_that_exits_does_not_end_the_loop(environment_loop):
    async def bad():
        raise SystemExit(3)

    async def spawn():
        task = asyncio.ensure_future(bad())
        await asyncio.sleep(0.01)
        return type(task.exception()).__name__

    async def alive():
        return "alive"

    letters = mailbox()

    assert "SystemExit" == await environment_loop.submit(spawn, letters).future
    assert "alive" == await environment_loop.submit(alive, letters).future


async def test_blocking_functions_get_a_helper_thread(environment_loop):
    async def both():
        helper = await environment_loop.run_blocking(threading.get_ident)
        return helper, threading.get_ident()

    helper, own = await environment_loop.submit(both, mailbox()).future

    assert helper != own


@pytest.mark.parametrize("pause_s", [0, 0.01])
async def test_a_task_that_stops_the_loop_does_not_end_it(environment_loop, pause_s):
    async def stop():
        asyncio.get_running_loop().stop()
        await asyncio.sleep(pause_s)
        return "after"

    letters = mailbox()
    for _ in range(3):
        answer = await asyncio.wait_for(
            environment_loop.submit(stop, letters).future, 5
        )

        assert "after" == answer


async def test_closing_ends_the_thread_though_a_task_stops_the_loop_too():
    loop = EnvironmentLoop()
    threads = set(threading.enumerate())

    async def stop():
        asyncio.get_running_loop().stop()

    await loop.submit(stop, mailbox()).future
    (thread,) = set(threading.enumerate()) - threads
    loop.close()
    thread.join(5)

    assert not thread.is_alive()


async def test_an_errand_cancelled_before_it_began_is_answered(environment_loop):
    letters = mailbox()

    async def nothing():
        pass

    async def cancel_all():
        for task in asyncio.all_tasks():
            task.cancel()

    first = environment_loop.submit(cancel_all, letters)  # both start in one batch
    second = environment_loop.submit(nothing, letters)
    done, _ = await asyncio.wait({first.future, second.future}, timeout=5)

    assert 2 == len(done)
    for future in done:
        if future.exception() is not None:
            assert "cancelled" in str(future.exception())


async def raises_cancelled():
    raise asyncio.CancelledError


async def cancels_its_task():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


async def exits_the_generator():
    raise GeneratorExit


async def raises_what_has_no_text():
    class NoTextError(Exception):
        def __str__(self):
            raise SystemExit

    raise NoTextError


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (raises_cancelled, "CancelledError"),
        (cancels_its_task, "CancelledError"),
        (exits_the_generator, "GeneratorExit"),
        (raises_what_has_no_text, "NoTextError"),
    ],
)
async def test_whatever_the_author_raises_is_his_fault(
    environment_loop, function, name
):
    async def call():
        return await _boundary.call_async(function)

    with pytest.raises(EnvironmentFault) as raised:
        await asyncio.wait_for(environment_loop.submit(call, mailbox()).future, 5)

    assert name == raised.value.exception


async def test_a_cancellation_of_ours_is_no_fault(environment_loop):
    entered = threading.Event()

    async def call():
        entered.set()
        return await _boundary.call_async(asyncio.sleep, 60)

    letters = mailbox()
    errand = environment_loop.submit(call, letters)
    await asyncio.to_thread(entered.wait, 5)
    await environment_loop.submit(lambda: errand.stop(5), letters).future

    with pytest.raises(RuntimeError, match="cancelled"):
        await errand.future
