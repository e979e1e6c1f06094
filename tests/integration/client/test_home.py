"""Where a client lives when loops stand still, end, or never were."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.integration.client.scripted import until
from tests.support.processes import wait_until

from openenv.core._client import io_thread
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectionClosed, RequestTimeout, SessionLost


@pytest.fixture
def server():
    with scripted_in_thread() as running:
        yield running


def test_a_loop_that_stands_still_is_left_and_its_connection_cut(server):
    client = GenericEnvClient(server.url)
    with asyncio.Runner() as runner:
        runner.run(client.reset_async())
        connection = client._home.link.connection
        with pytest.raises(SessionLost, match="event loop"):
            client.step({"it": 1})
        again = client.reset()
        runner.run(asyncio.sleep(0.01))

        assert connection.is_lost
    client.close()

    assert 2 == again.observation["session"]


def test_closing_a_client_whose_loop_has_ended_is_in_order(server):
    client = GenericEnvClient(server.url)
    asyncio.run(client.reset_async())
    client.close()

    assert not client._home.link.is_in_use
    assert 1 == client.step({"it": 1}).observation["steps"]
    client.close()


def test_a_blocking_client_may_be_closed_by_a_loop(server):
    client = GenericEnvClient(server.url)
    client.reset()
    asyncio.run(_close(client))

    assert not client._home.link.is_in_use


async def _close(client):
    await client.close()


def test_a_cancelled_call_handed_over_is_abandoned_there(server):
    async def cancel():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.step({"it": "old", "sleep": 0.3}), 0.1)
        return await client.step({"it": "new"})

    client = GenericEnvClient(server.url)
    client.reset()
    new = asyncio.run(cancel())
    client.close()

    assert "new" == new.observation["echo"]["it"]


@contextmanager
def owned_by_a_blocked_loop(client):
    """Have a thread's loop open the session, then block until this is left."""
    blocked, go_on = threading.Event(), threading.Event()

    async def own():
        await client.reset()
        asyncio.get_running_loop().call_soon(blocked.set)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        go_on.wait(5)
        await asyncio.sleep(0.2)
        await client.close()

    thread = threading.Thread(target=lambda: asyncio.run(own()))
    thread.start()
    blocked.wait(5)
    try:
        yield
    finally:
        go_on.set()
        thread.join()


CALLS = {
    "blocking": lambda client, options: client.step({"m": 1}, **options),
    "by the face": lambda client, options: client.sync().step({"m": 1}, **options),
    "by a loop": lambda client, options: asyncio.run(
        client.step_async({"m": 1}, **options)
    ),
}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("how", CALLS)
def test_a_call_to_a_blocked_loop_ends_in_its_own_time(server, how, own):
    client = GenericEnvClient(server.url, message_timeout_s=30 if own else 0.2)
    with owned_by_a_blocked_loop(client):
        began = time.monotonic()
        with pytest.raises(
            RequestTimeout, match=r"^step was not answered within 0.2 s"
        ):
            CALLS[how](client, {"timeout_s": 0.2} if own else {})

        assert time.monotonic() - began < 1.5
    assert "step" not in [message["type"] for message in server.received]


def test_a_call_to_a_blocked_loop_may_have_no_limit(server):
    client = GenericEnvClient(server.url, message_timeout_s=float("inf"))
    with owned_by_a_blocked_loop(client):
        thread = threading.Thread(target=client.step, args=({"m": 1},))
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
    thread.join()


def test_blocking_on_the_loop_itself_is_refused():
    async def block():
        loop = asyncio.get_running_loop()
        with pytest.raises(RuntimeError, match="has to serve it"):
            io_thread.run_on(loop, asyncio.sleep(0))

    asyncio.run(block())


def test_a_stopped_thread_leaves_nothing_running(server):
    own = io_thread.IoThread()
    client = GenericEnvClient(server.url)
    io_thread.run_on(own.loop, client.reset_async())
    hung = asyncio.run_coroutine_threadsafe(client.step_async({"sleep": 30}), own.loop)
    own.stop()
    own.stop()

    assert hung.cancelled()
    assert own.loop.is_closed()
    assert not own._thread.is_alive()
    client.close()


def test_a_call_handed_to_a_loop_that_ends_is_told_so(server):
    own = io_thread.IoThread()
    client = GenericEnvClient(server.url)
    io_thread.run_on(own.loop, client.reset_async())

    async def outlive():
        step = asyncio.ensure_future(client.step_async({"sleep": 30}))
        await until(lambda: any(m["type"] == "step" for m in server.received))
        await asyncio.to_thread(own.stop)
        with pytest.raises(ConnectionClosed, match="event loop"):
            await step

    asyncio.run(outlive())
    client.close()


def test_a_blocking_call_on_a_loop_that_ends_is_told_so(server):
    own = io_thread.IoThread()
    client = GenericEnvClient(server.url)
    io_thread.run_on(own.loop, client.reset_async())
    told = []

    def step():
        with pytest.raises(ConnectionClosed, match="event loop") as caught:
            client.step({"sleep": 30})
        told.append(caught.value)

    thread = threading.Thread(target=step)
    thread.start()
    wait_until(lambda: any(m["type"] == "step" for m in server.received), 5)
    own.stop()
    thread.join(5)
    client.close()

    assert [1001] == [error.code for error in told]


def test_without_uvloop_the_thread_runs_asyncio(monkeypatch, server):
    monkeypatch.setattr(io_thread.importlib.util, "find_spec", lambda _name: None)
    own = io_thread.IoThread()
    client = GenericEnvClient(server.url)
    result = io_thread.run_on(own.loop, client.reset_async())
    io_thread.run_on(own.loop, _close(client))
    own.stop()

    assert "asyncio" == type(own.loop).__module__.partition(".")[0]
    assert 1 == result.observation["session"]


def test_many_threads_that_start_at_once_get_one_loop():
    loops = []
    threads = [
        threading.Thread(target=lambda: loops.append(io_thread.io_loop()))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == len(set(map(id, loops)))
