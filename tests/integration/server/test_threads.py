"""Threads: health while environments block, the pool's growth and its bounds."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import threading
import time
from contextlib import AsyncExitStack

import httpx
import pytest
from tests.integration.server.hosting import (
    RESET,
    STATE,
    AsyncEchoEnvironment,
    Echo,
    EchoEnvironment,
    EchoState,
    ask,
    pool_threads,
    serving,
    step,
    until,
)

from openenv.core.env_server import Action, HTTPEnvServer, _runtime


async def health_times(server, count=8):
    """Return how long GET /health took, in seconds."""
    times = []
    async with httpx.AsyncClient(base_url=server.url) as client:
        await client.get("/health")  # connects
        for _ in range(count):
            start = time.monotonic()
            response = await client.get("/health")
            times.append(time.monotonic() - start)
            assert {"status": "healthy"} == response.json()
    return times


def blocking_constructor(self):
    time.sleep(0.6)
    EchoEnvironment.__init__(self)


@property
def blocking_state(_self):
    time.sleep(0.6)
    return EchoState()


async def blocking_step_async(self, action, **_kwargs):
    time.sleep(0.6)  # noqa: ASYNC251 - what careless authors do
    return self.answer(action)


async def blocking_reset_async(self, **_kwargs):
    return self.reset()


BLOCKING = {
    "constructor": (EchoEnvironment, {"__init__": blocking_constructor}, RESET),
    "state": (EchoEnvironment, {"state": blocking_state}, STATE),
    "state of an async environment": (
        AsyncEchoEnvironment,
        {"state": blocking_state},
        STATE,
    ),
    "step": (EchoEnvironment, {}, step(sleep_s=0.6)),
    "step_async": (AsyncEchoEnvironment, {"step_async": blocking_step_async}, step()),
}


@pytest.mark.parametrize("what", BLOCKING)
async def test_health_is_answered_while_an_environment_blocks(what):
    base, members, message = BLOCKING[what]
    with serving(base.variant(**members)) as server:
        async with server.session() as ws:
            await ws.send(message)
            times = await health_times(server)
            await ws.recv()

    # The median: the machine may be busy with other tests.
    assert statistics.median(times) < 0.05


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/reset"), ("GET", "/state"), ("GET", "/metadata")]
)
async def test_health_is_answered_while_an_http_request_builds_its_environment(
    method, path
):
    environment = EchoEnvironment.variant(__init__=blocking_constructor)
    with serving(environment) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            request = asyncio.create_task(client.request(method, path))
            times = await health_times(server)
            response = await request

    assert 200 == response.status_code
    assert statistics.median(times) < 0.05


async def test_up_to_32_sessions_have_a_thread_of_their_own_from_reset_to_reset():
    with serving(EchoEnvironment.variant(), max_concurrent_envs=64) as server:
        sessions = [server.session() for _ in range(32)]
        sockets = [await session.__aenter__() for session in sessions]
        rounds = [
            [
                (await ask(ws, message))["data"]["observation"]["thread"]
                for ws in sockets
            ]
            for message in (RESET, step(), step(), RESET)
        ]
        for session in sessions:
            await session.__aexit__(None, None, None)

    assert 32 == len(set(rounds[0]))
    assert [rounds[0]] * 4 == rounds


async def test_a_session_beyond_the_base_does_not_wait_for_a_step_that_sleeps():
    others = set(threading.enumerate())
    with serving(EchoEnvironment.variant(), max_concurrent_envs=80) as server:
        sessions = [server.session() for _ in range(80)]
        sockets = [await session.__aenter__() for session in sessions]
        for ws in sockets:
            await ask(ws, RESET)
        before = pool_threads(others)
        start = time.monotonic()
        await asyncio.gather(*(ask(ws, step(sleep_s=0.5)) for ws in sockets))
        took_s = time.monotonic() - start
        grown = pool_threads(others)
        for session in sessions:
            await session.__aexit__(None, None, None)

    assert 32 == before
    assert took_s < 1.5  # one after the other: 80 / 32 rounds of 0.5 s
    assert grown <= 80


async def test_all_instances_of_a_single_threaded_class_share_one_thread():
    environment = EchoEnvironment.variant(REQUIRES_SINGLE_THREAD_EXECUTOR=True)
    with serving(environment) as server:
        async with server.session() as one, server.session() as two:
            await asyncio.gather(*(ask(ws, step(sleep_s=0.1)) for ws in (one, two)))
        async with httpx.AsyncClient(base_url=server.url) as client:
            await client.post("/reset")
        await until(lambda: environment.count("close") == 3)

    assert 1 == len({thread for _, thread in environment.events})


async def test_a_dedicated_thread_is_kept_whatever_the_others_do():
    class Bound(EchoEnvironment):
        """Has what is bound to its thread, and blocks longer than 20 ms."""

        def __init__(self):
            super().__init__()
            self.database = sqlite3.connect(":memory:")

        def step(self, action, **kwargs):
            self.database.execute("select 1")
            return super().step(action, **kwargs)

        def close(self):
            self.database.close()
            super().close()

    environment = Bound.variant(EXECUTION="dedicated")
    with serving(environment, max_concurrent_envs=80) as server:
        async with AsyncExitStack() as stack:
            sockets = [
                await stack.enter_async_context(server.session()) for _ in range(80)
            ]
            for _ in range(2):
                answers = await asyncio.gather(
                    *(ask(ws, step(sleep_s=0.1)) for ws in sockets)
                )
                assert {"observation"} == {answer["type"] for answer in answers}
        await until(lambda: environment.count("close") == 80)


def test_an_unknown_execution_is_refused_when_the_app_is_made():
    environment = EchoEnvironment.variant(EXECUTION="fork")
    with pytest.raises(ValueError, match="'thread' or 'dedicated', not 'fork'"):
        HTTPEnvServer(environment, Action, Echo)


async def test_asynchronous_environments_share_one_loop_thread_and_run_side_by_side():
    environment = AsyncEchoEnvironment.variant()
    with serving(environment, max_concurrent_envs=40) as server:
        sessions = [server.session() for _ in range(40)]
        sockets = [await session.__aenter__() for session in sessions]
        for ws in sockets:
            await ask(ws, RESET)
        start = time.monotonic()
        await asyncio.gather(*(ask(ws, step(sleep_s=0.5)) for ws in sockets))
        took_s = time.monotonic() - start
        for session in sessions:
            await session.__aexit__(None, None, None)
    threads = {thread for what, thread in environment.events if what == "step"}

    assert took_s < 1.5
    assert 1 == len(threads)
    assert threading.get_ident() not in threads


async def test_a_blocking_reset_beside_an_async_step_runs_on_a_helper_thread():
    release = threading.Event()

    def reset(self, **_kwargs):
        self._note("reset")
        assert release.wait(20)
        return self.answer_reset()

    environment = AsyncEchoEnvironment.variant(
        reset=reset,
        reset_async=EchoEnvironment.reset_async,
        answer_reset=EchoEnvironment.reset,
    )
    with serving(environment) as server:
        async with server.session() as blocked, server.session() as other:
            await blocked.send(RESET)
            await until(lambda: environment.count("reset") == 1)
            answer = await ask(other, step(text="not delayed"))
            release.set()
            reset_answer = json.loads(await blocked.recv())

    assert "not delayed" == answer["data"]["observation"]["text"]
    assert "observation" == reset_answer["type"]


async def test_an_environment_that_stops_the_loop_harms_no_session():
    async def step_async(self, action, **_kwargs):
        if action.text == "stop":
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0.01)
        return self.answer(action)

    environment = AsyncEchoEnvironment.variant(step_async=step_async)
    with serving(environment, max_concurrent_envs=2) as server:
        for _ in range(3):
            async with server.session() as other, server.session() as culprit:
                await ask(other, RESET)
                answers = [
                    await asyncio.wait_for(ask(ws, step(text=text)), 5)
                    for ws, text in ((culprit, "stop"), (other, "go"), (culprit, "on"))
                ]
            await until(lambda: server.server.active_sessions == 0)

            assert ["stop", "go", "on"] == [
                answer["data"]["observation"]["text"] for answer in answers
            ]


@pytest.mark.parametrize("single", [True, False])
async def test_http_is_refused_with_503_while_hung_requests_hold_all_threads(
    monkeypatch, single
):
    monkeypatch.setattr(_runtime, "ONE_SHOT_THREADS", 1)
    monkeypatch.setattr(_runtime, "ONE_SHOT_WAIT_S", 0.1)
    entered, leave = threading.Event(), threading.Event()

    def hang(_self, action):
        entered.set()
        assert leave.wait(20)
        return Echo(text=action.text)

    environment = EchoEnvironment.variant(
        answer=hang, REQUIRES_SINGLE_THREAD_EXECUTOR=single
    )
    with serving(environment) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            hung = asyncio.create_task(client.post("/step", json={"action": {}}))
            await until(entered.is_set)
            refused = [await client.post("/reset"), await client.get("/state")]
            leave.set()
            answers = [await hung, await client.post("/reset")]
        await until(lambda: environment.count("close") == 2)

    assert [503, 503] == [response.status_code for response in refused]
    assert {"CAPACITY_REACHED"} == {r.json()["detail"]["code"] for r in refused}
    assert [200, 200] == [response.status_code for response in answers]
    assert 2 == environment.count("init")


async def test_stopping_the_server_ends_its_threads():
    before = set(threading.enumerate())
    with serving(AsyncEchoEnvironment.variant()) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
        during = set(threading.enumerate()) - before

    await until(lambda: not set(threading.enumerate()) - before)
    assert any(thread.name == "openenv-env-loop" for thread in during)
