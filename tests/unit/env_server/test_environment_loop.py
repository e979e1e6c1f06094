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


async def test_a_cancellation_of_the_authors_own_is_his_fault(environment_loop):
    async def cancels_itself():
        raise asyncio.CancelledError

    async def call():
        return await _boundary.call_async(cancels_itself)

    with pytest.raises(EnvironmentFault):
        await environment_loop.submit(call, mailbox()).future
