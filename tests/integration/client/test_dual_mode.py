"""One client for callers that await and callers that block, on any loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.support.processes import wait_until

from openenv.core._client.io_thread import THREAD_NAME
from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectionClosed, RequestTimeout, SessionLost


@pytest.fixture
def server():
    with scripted_in_thread() as running:
        yield running


def session(result):
    return result.observation["session"]


def io_threads() -> int:
    return sum(thread.name == THREAD_NAME for thread in threading.enumerate())


def test_outside_a_loop_methods_run_at_once_and_give_values(server):
    client = GenericEnvClient(server.url)
    assert client is client.connect()
    assert 1 == session(client.reset())
    assert 1 == client.step({"it": 1}).observation["steps"]
    assert {"session": 1, "steps": 1} == client.state()
    assert client.close() is None


async def test_inside_a_loop_methods_give_awaitables(server):
    client = GenericEnvClient(server.url)
    waiting = client.reset()
    assert inspect.isawaitable(waiting)
    await waiting
    results = await asyncio.gather(client.step({"it": 1}), client.step({"it": 2}))
    await client.close()

    assert [1, 2] == [result.observation["steps"] for result in results]


def test_the_plain_with_statement_works(server):
    with GenericEnvClient(server.url) as client:
        assert 1 == session(client.reset())

    wait_until(lambda: server.said_goodbye == 1, 5)


def test_the_blocking_face_offers_all_and_is_one(server):
    client = GenericEnvClient(server.url)
    with client.sync() as env:
        assert env is client.sync()
        assert 1 == session(env.reset(seed=1))
        assert {"it": 1} == env.step({"it": 1}).observation["echo"]
        assert 1 == env.state()["steps"]
        with pytest.raises(RequestTimeout):
            env.step({"it": 2, "sleep": 0.2}, timeout_s=0.05)
        assert {"it": 3} == env.step({"it": 3}).observation["echo"]
        assert client.base_url == env.base_url


async def test_the_blocking_face_works_inside_a_running_loop(server):
    with GenericEnvClient(server.url).sync() as env:
        assert 1 == session(env.reset())


async def test_blocking_the_loop_that_has_to_answer_is_refused(server):
    async with GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(RuntimeError, match="await the client's method instead"):
            client.sync().step({"it": 1})
        assert 1 == (await client.step({"it": 2})).observation["steps"]


def test_a_client_connected_in_asyncio_run_goes_on_outside(server):
    client = GenericEnvClient(server.url)
    asyncio.run(_connect(client))
    assert 2 == session(client.sync().reset())
    client.close()


async def _connect(client):
    await client.connect()


def test_a_session_begun_in_asyncio_run_is_lost_after_it(server):
    async def begin():
        await client.reset()

    client = GenericEnvClient(server.url)
    asyncio.run(begin())
    with pytest.raises(SessionLost, match="event loop"):
        client.step({"it": 1})
    assert 2 == session(client.reset())
    client.close()


def test_asyncio_run_gives_the_session_back_when_it_ends():
    with scripted_in_thread(capacity=1) as server:
        client = GenericEnvClient(server.url)
        for number in range(1, 4):
            assert number == session(asyncio.run(_reset(client)))
        client.close()


async def _reset(client):
    return await client.reset()


def test_one_loop_may_be_run_in_pieces(server):
    client = GenericEnvClient(server.url)
    with asyncio.Runner() as runner:
        assert 1 == session(runner.run(_reset(client)))
        step = runner.run(client.step_async({"it": 1}))

    assert (1, 1) == (session(step), step.observation["steps"])


def test_a_session_begun_blocking_goes_on_inside_a_loop(server):
    async def play():
        return await client.step({"it": 1})

    client = GenericEnvClient(server.url)
    client.reset()
    step = asyncio.run(play())
    again = client.step({"it": 2})
    client.close()

    assert [(1, 1), (1, 2)] == [
        (session(result), result.observation["steps"]) for result in (step, again)
    ]


async def test_a_session_of_a_loop_is_shared_with_other_threads(server):
    async with GenericEnvClient(server.url) as client:
        await client.reset()
        steps = await asyncio.gather(
            *(asyncio.to_thread(client.sync().step, {"it": n}) for n in range(8))
        )

    assert set(range(1, 9)) == {step.observation["steps"] for step in steps}
    assert {1} == {session(step) for step in steps}


def test_blocking_callers_of_one_client_are_served_one_by_one(server):
    client = GenericEnvClient(server.url)
    client.reset()
    steps = []
    threads = [
        threading.Thread(target=lambda n=n: steps.append(client.step({"it": n})))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()

    assert set(range(1, 9)) == {step.observation["steps"] for step in steps}


def test_all_blocking_clients_share_one_thread(server):
    clients = [GenericEnvClient(server.url) for _ in range(20)]
    for client in clients:
        client.reset()

    assert 1 == io_threads()
    for client in clients:
        client.sync().close()
    assert 1 == io_threads()


def test_pings_are_answered_while_the_caller_thinks(server):
    client = GenericEnvClient(
        server.url, websocket_ping_interval_s=0.05, websocket_ping_timeout_s=0.1
    )
    client.reset()
    time.sleep(0.5)  # the caller computes; nothing is waited for
    assert 1 == client.step({"it": 1}).observation["steps"]
    client.close()


async def test_a_loop_blocked_longer_than_all_timeouts_loses_nothing(server):
    client = GenericEnvClient(
        server.url, websocket_ping_interval_s=0.05, websocket_ping_timeout_s=0.1
    )
    async with client:
        await client.reset()
        step = asyncio.ensure_future(
            client.step({"it": 1, "sleep": 0.2}, timeout_s=0.4)
        )
        await asyncio.sleep(0.05)
        time.sleep(0.8)  # noqa: ASYNC251 - the loop is blocked on purpose
        assert 1 == (await step).observation["steps"]
        assert 2 == (await client.step({"it": 2})).observation["steps"]


def test_closing_without_a_connection_starts_nothing():
    client = GenericEnvClient("http://127.0.0.1:9")
    client.close()
    client.sync().close()
    asyncio.run(_close(client))


async def _close(client):
    await client.close()
    await client.disconnect()


# --- subclasses -------------------------------------------------------------------


class Counting(EnvClient[dict, dict, dict]):
    """Override what users override."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls = []

    async def reset(self, **kwargs):
        self.calls.append("reset")
        return await super().reset(**kwargs)

    async def step(self, action, **kwargs):
        self.calls.append("step")
        return await super().step({**action, "extra": True}, **kwargs)

    async def close(self):
        self.calls.append("close")
        await super().close()

    async def twice(self, action):
        await self.step(action)
        return await self.step(action)

    def plain(self):
        return "plain"


def test_overrides_run_behind_the_blocking_face(server):
    client = Counting(server.url)
    with client.sync() as env:
        env.reset()
        assert {"it": 1, "extra": True} == env.step({"it": 1}).observation["echo"]

    assert ["reset", "step", "close"] == client.calls


async def test_overrides_run_behind_the_aliases(server):
    async with Counting(server.url) as client:
        await client.reset_async(seed=1)
        await client.step_async({"it": 1})
        await client.step_async({"it": 1}, timeout_s=5)

    assert ["reset", "step", "step", "close"] == client.calls


def test_own_coroutine_methods_block_behind_the_face(server):
    with Counting(server.url).sync() as env:
        env.reset()
        assert 2 == env.twice({"it": 1}).observation["steps"]
        assert "plain" == env.plain()
        assert env.plain.__self__ is env.async_client
        with pytest.raises(AttributeError, match="missing"):
            _ = env.missing


class Hooked(EnvClient[dict, dict, dict]):
    """Override upstream's hooks; note where they run."""

    threads: set = set()  # noqa: RUF012 - cleared by its test

    def _step_payload(self, action):
        self.threads.add(threading.current_thread().name)
        return {"it": action}

    def _parse_result(self, payload):
        self.threads.add(threading.current_thread().name)
        return payload["observation"]["echo"].get("it", "reset")

    def _parse_state(self, payload):
        return payload["steps"]


def test_hooks_rule_and_run_in_the_callers_thread(server):
    Hooked.threads.clear()
    client = Hooked(server.url)
    assert "reset" == client.reset()
    assert "word" == client.step("word")
    assert 1 == client.state()
    client.close()

    assert {threading.current_thread().name} == Hooked.threads


async def test_hooks_set_on_an_instance_rule_too(server):
    async with GenericEnvClient(server.url) as client:
        client._parse_state = lambda payload: payload["steps"] + 100
        client._step_payload = lambda action: {"it": action}
        await client.reset()
        await client.step("x")
        assert 101 == await client.state()


class Deep(EnvClient[dict, dict, dict]):
    """Override upstream 0.10's coroutine hooks."""

    async def _step_async(self, action, **kwargs):
        result = await super()._step_async(action, **kwargs)
        result.reward = 9.0
        return result


def test_the_coroutine_hooks_rule_in_every_mode(server):
    with Deep(server.url) as client:
        client.reset()
        assert 9.0 == client.step({"it": 1}).reward
        assert 9.0 == client.sync().step({"it": 1}).reward


def test_a_failing_hook_fails_its_call_and_nothing_else(server):
    class Failing(GenericEnvClient):
        def _parse_result(self, payload):
            raise KeyError(payload["observation"]["steps"])

    client = Failing(server.url)
    with pytest.raises(KeyError):
        client.reset()
    with pytest.raises(KeyError, match="1"):
        client.step({})
    assert 1 == client.state()["steps"]
    client.close()


def test_a_drop_is_told_to_a_blocking_caller(server):
    with GenericEnvClient(server.url).sync() as env:
        env.reset()
        with pytest.raises(ConnectionClosed):
            env.step({"drop": 1})
        with pytest.raises(SessionLost):
            env.step({})
        assert 2 == session(env.reset())
