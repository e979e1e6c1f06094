"""Clients that vanish, sessions that expire: slots, threads and env.close()."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time

import pytest
from tests.integration.server.hosting import (
    RESET,
    STATE,
    AsyncEchoEnvironment,
    Echo,
    EchoEnvironment,
    ask,
    close_code,
    serving,
    step,
    until,
)
from websockets.exceptions import ConnectionClosed

from openenv.core.env_server import ConcurrencyConfig, _serve, _sessions


class Gate:
    """A step that waits for the test, and tells that it waits."""

    def __init__(self):
        self.entered = threading.Event()
        self.leave = threading.Event()

    def method(self):
        """Make the environment's `answer`."""

        def answer(_environment, action):
            if action.text == "wait":
                self.entered.set()
                assert self.leave.wait(20)
            return Echo(text=action.text)

        return answer


async def vanish_in_step(server, gate):
    """Send a step that waits, then cut the connection."""
    async with server.session() as ws:
        await ask(ws, RESET)
        await ws.send(step(text="wait"))
        await until(gate.entered.is_set)
        ws.transport.abort()


async def test_an_asynchronous_step_is_cancelled_and_the_slot_free_at_once():
    environment = AsyncEchoEnvironment.variant(SUPPORTS_CONCURRENT_SESSIONS=False)
    with serving(environment, max_concurrent_envs=1) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
            await ws.send(step(sleep_s=60))
            await until(lambda: environment.count("step") == 1)
            ws.transport.abort()
        took_s = await until(lambda: server.server.active_sessions == 0)

    assert took_s < 1
    assert 1 == environment.count("cancelled")
    assert 1 == environment.count("close")


async def test_of_a_single_session_class_the_slot_is_free_when_close_has_returned():
    gate = Gate()
    environment = EchoEnvironment.variant(
        SUPPORTS_CONCURRENT_SESSIONS=False,
        answer=gate.method(),
    )
    with serving(environment, max_concurrent_envs=1) as server:
        await vanish_in_step(server, gate)
        async with server.session() as ws:
            refused = json.loads(await ws.recv())
        closed_before = environment.count("close")
        gate.leave.set()
        await until(lambda: server.server.active_sessions == 0)
        async with server.session() as ws:
            answer = await ask(ws, RESET)

    assert "CAPACITY_REACHED" == refused["data"]["code"]
    assert 0 == closed_before
    assert "observation" == answer["type"]


async def test_of_a_concurrent_class_the_slot_is_free_at_once_and_counts_as_abandoned():
    gate = Gate()
    environment = EchoEnvironment.variant(answer=gate.method())
    with serving(environment, max_concurrent_envs=1) as server:
        await vanish_in_step(server, gate)
        await until(lambda: server.server.active_sessions == 0)
        abandoned = server.server.abandoned_sessions
        async with server.session() as ws:
            answer = await ask(ws, step(text="next"))
        gate.leave.set()
        await until(lambda: server.server.abandoned_sessions == 0)
        await until(lambda: environment.count("close") == 2)

    assert 1 == abandoned
    assert "next" == answer["data"]["observation"]["text"]


async def test_too_many_abandoned_sessions_refuse_new_ones():
    gate = Gate()
    environment = EchoEnvironment.variant(answer=gate.method())
    limits = ConcurrencyConfig(max_concurrent_envs=4, max_abandoned_sessions=1)
    options = {"max_concurrent_envs": None, "concurrency_config": limits}
    with serving(environment, **options) as server:
        for _ in range(2):
            gate.entered.clear()
            await vanish_in_step(server, gate)
            await until(lambda: server.server.active_sessions == 0)
        async with server.session() as ws:
            refused = json.loads(await ws.recv())
            with pytest.raises(ConnectionClosed):
                await ws.recv()
        gate.leave.set()
        await until(lambda: server.server.abandoned_sessions == 0)
        async with server.session() as ws:
            answer = await ask(ws, RESET)

    assert "CAPACITY_REACHED" == refused["data"]["code"]
    assert "2 still running" in refused["data"]["message"]
    assert 1013 == close_code(ws) or "observation" == answer["type"]
    assert "observation" == answer["type"]


async def test_a_step_that_waits_for_its_thread_is_never_run_for_a_vanished_client():
    gate = Gate()
    environment = EchoEnvironment.variant(
        REQUIRES_SINGLE_THREAD_EXECUTOR=True,
        answer=gate.method(),
    )
    with serving(environment, max_concurrent_envs=2) as server:
        async with server.session() as first, server.session() as second:
            await ask(first, RESET)
            await ask(second, RESET)
            await first.send(step(text="wait"))
            await until(gate.entered.is_set)
            await second.send(step(text="never"))
            second.transport.abort()
            await until(lambda: server.server.active_sessions == 1)
            gate.leave.set()
            answer = json.loads(await first.recv())
        await until(lambda: environment.count("close") == 2)

    assert "wait" == answer["data"]["observation"]["text"]
    assert 1 == environment.count("step")


async def test_a_client_that_vanishes_while_its_environment_is_built_leaves_nothing():
    entered, leave = threading.Event(), threading.Event()

    def factory():
        entered.set()
        assert leave.wait(20)
        return environment()

    environment = EchoEnvironment.variant()
    with serving(factory, max_concurrent_envs=None) as server:
        async with server.session() as ws:
            await until(entered.is_set)
            ws.transport.abort()
        leave.set()
        await until(lambda: environment.count("close") == 1)
        await until(lambda: server.server.active_sessions == 0)

    assert 1 == environment.count("init")


async def close_asynchronously(self):
    await asyncio.sleep(0.01)
    self._note("close")


@pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])
@pytest.mark.parametrize("vanishes", ["while it is built", "later"])
async def test_an_async_close_is_awaited_once_on_the_environment_loop(base, vanishes):
    entered, leave = threading.Event(), threading.Event()

    def construct(self):
        entered.set()
        assert leave.wait(20)
        EchoEnvironment.__init__(self)

    def name_of_thread(self, what):
        type(self).events.append((what, threading.current_thread().name))

    environment = base.variant(
        __init__=construct, close=close_asynchronously, _note=name_of_thread
    )
    with serving(environment) as server:
        async with server.session() as ws:
            await until(entered.is_set)
            if vanishes == "later":
                leave.set()
                await ask(ws, RESET)
            ws.transport.abort()
        await until(lambda: server.server.active_sessions == 0)
        leave.set()
        await until(lambda: environment.count("close") == 1)
        await until(lambda: server.server.abandoned_sessions == 0)

    assert ("close", "openenv-env-loop") == environment.events[-1]
    assert 1 == environment.count("close")


async def test_the_async_close_of_a_probed_environment_is_awaited():
    environment = EchoEnvironment.variant(close=close_asynchronously)
    with serving(lambda: environment(), max_concurrent_envs=2):  # noqa: PLW0108 - a function is probed
        closed = environment.count("close")

    assert 1 == closed


@pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])
async def test_closes_that_hang_cost_no_thread_and_count_as_abandoned(
    base, monkeypatch, caplog
):
    monkeypatch.setattr(_sessions, "CLOSE_TIMEOUT_S", 0.5)
    leave = threading.Event()

    def close(_self):
        assert leave.wait(20)

    async def close_async(_self):
        await until(leave.is_set, 20)

    hangs = close if base is EchoEnvironment else close_async
    limits = ConcurrencyConfig(max_concurrent_envs=2, max_abandoned_sessions=3)
    options = {"max_concurrent_envs": None, "concurrency_config": limits}
    with serving(base.variant(close=hangs), **options) as server:
        for _ in range(4):
            async with server.session() as ws:
                answer = await asyncio.wait_for(ask(ws, RESET), 5)

            assert "observation" == answer["type"]

            await until(lambda: server.server.active_sessions == 0)
        await until(lambda: server.server.abandoned_sessions == 4)
        async with server.session() as ws:
            refused = json.loads(await ws.recv())
        leave.set()
        await until(lambda: server.server.abandoned_sessions == 0)
        async with server.session() as ws:
            answer = await ask(ws, RESET)

    assert "CAPACITY_REACHED" == refused["data"]["code"]
    assert "observation" == answer["type"]
    assert 4 == caplog.text.count("has not returned within")


@pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])
async def test_close_is_called_once_on_the_sessions_own_thread(base):
    environment = base.variant()
    with serving(environment) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
            await ask(ws, step())
        await until(lambda: environment.count("close") == 1)
    events = [event for event in environment.events if event[0] != "init"]

    assert ["reset", "step", "close"] == [what for what, _ in events]
    assert 1 == len({thread for _, thread in events})


@pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])
async def test_stopping_the_server_closes_the_environments_of_open_sessions(base):
    environment = base.variant()
    with serving(environment) as server:
        session = server.session()
        ws = await session.__aenter__()
        await ask(ws, RESET)
    closed = environment.count("close")
    with pytest.raises(ConnectionClosed):
        await ws.recv()
    await session.__aexit__(None, None, None)

    assert 1 == closed
    assert 1012 == close_code(ws)  # service restart


@pytest.mark.parametrize("concurrent", [True, False])
async def test_stopping_the_server_waits_for_running_steps_and_closes_once(concurrent):
    environment = EchoEnvironment.variant(SUPPORTS_CONCURRENT_SESSIONS=concurrent)
    count = 5 if concurrent else 1
    with serving(environment, max_concurrent_envs=count) as server:
        sessions = [server.session() for _ in range(count)]
        sockets = [await session.__aenter__() for session in sessions]
        for ws in sockets:
            await ws.send(step(sleep_s=1))
        await until(lambda: environment.count("step") == count)
    closed = environment.count("close")
    for session, ws in zip(sessions, sockets, strict=True):
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        await session.__aexit__(None, None, None)

        assert 1012 == close_code(ws)

    assert count == closed


@pytest.mark.parametrize("hangs", ["step", "close"])
async def test_a_hung_environment_holds_the_stop_until_the_deadline_only(
    hangs, monkeypatch
):
    monkeypatch.setattr(_serve, "STOP_TIMEOUT_S", 1.0)
    leave = threading.Event()

    def hang(_self, *_action):
        assert leave.wait(20)
        return Echo()

    members = {"step": {"answer": hang}, "close": {"close": hang}}[hangs]
    environment = EchoEnvironment.variant(**members)
    with serving(environment) as server:
        session = server.session()
        ws = await session.__aenter__()
        await ws.send(step())
        await until(lambda: environment.count("step") == 1)
        start = time.monotonic()
    took_s = time.monotonic() - start
    leave.set()
    with contextlib.suppress(ConnectionClosed):
        await ws.recv()
    await session.__aexit__(None, None, None)

    assert 0.9 < took_s < 3


async def test_a_close_that_raises_or_exits_frees_the_slot(caplog):
    def close(_self):
        raise SystemExit("no")

    environment = EchoEnvironment.variant(
        close=close, SUPPORTS_CONCURRENT_SESSIONS=False
    )
    with serving(environment, max_concurrent_envs=1) as server:
        for _ in range(3):
            async with server.session() as ws:
                answer = await ask(ws, RESET)

                assert "observation" == answer["type"]

    assert "env.close() raised" in caplog.text


async def test_the_close_of_an_async_environment_waits_for_its_blocking_reset():
    entered, leave = threading.Event(), threading.Event()

    def reset(self, **_kwargs):
        entered.set()
        assert leave.wait(20)
        self._note("reset ended")
        return Echo()

    environment = AsyncEchoEnvironment.variant(
        reset=reset, reset_async=EchoEnvironment.reset_async
    )
    with serving(environment) as server:
        async with server.session() as ws:
            await ws.send(RESET)
            await until(entered.is_set)
            ws.transport.abort()
        await until(lambda: server.server.active_sessions == 0)
        abandoned = server.server.abandoned_sessions
        leave.set()
        await until(lambda: environment.count("close") == 1)
        await until(lambda: server.server.abandoned_sessions == 0)

    assert 1 == abandoned
    assert ["init", "reset ended", "close"] == [what for what, _ in environment.events]


@pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])
async def test_an_idle_session_gets_an_error_frame_and_1001(base):
    environment = base.variant()
    limits = ConcurrencyConfig(max_concurrent_envs=2, session_timeout=0.3)
    options = {"max_concurrent_envs": None, "concurrency_config": limits}
    with serving(environment, **options) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
            start = time.monotonic()
            expired = json.loads(await ws.recv())
            took_s = time.monotonic() - start
            with pytest.raises(ConnectionClosed):
                await ws.recv()
        await until(lambda: server.server.active_sessions == 0)

    assert "SESSION_EXPIRED" == expired["data"]["code"]
    assert 1001 == close_code(ws)
    assert 0.25 < took_s < 2
    assert 1 == environment.count("close")


@pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])
async def test_a_session_is_never_idle_during_a_long_step(base):
    environment = base.variant()
    limits = ConcurrencyConfig(max_concurrent_envs=1, session_timeout=0.2)
    options = {"max_concurrent_envs": None, "concurrency_config": limits}
    with serving(environment, **options) as server:
        async with server.session() as ws:
            answer = await ask(ws, step(text="long", sleep_s=0.7))
            info = await ask(ws, STATE)

    assert "long" == answer["data"]["observation"]["text"]
    assert "state" == info["type"]


async def test_reading_the_state_keeps_a_session_alive():
    limits = ConcurrencyConfig(max_concurrent_envs=1, session_timeout=0.4)
    options = {"max_concurrent_envs": None, "concurrency_config": limits}
    with serving(EchoEnvironment.variant(), **options) as server:
        async with server.session() as ws:
            end = time.monotonic() + 1
            while time.monotonic() < end:
                answer = await ask(ws, STATE)
                await asyncio.sleep(0.05)

    assert "state" == answer["type"]
