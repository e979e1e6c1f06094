"""What `close` ends: all that connects, all children, and itself never halfway."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.integration.client.scripted import free_port, raw_server, scripted, until

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectionClosed

CLOSED = "the client was closed"


@pytest.fixture
def server():
    with scripted_in_thread() as server:
        yield server


async def nothing_open(server):
    await until(lambda: not server.active)
    await asyncio.sleep(0.05)

    assert not server.active


async def told(*calls):
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        assert ConnectionClosed is type(outcome)
        assert CLOSED in str(outcome)


@pytest.mark.parametrize("how", ["close", "disconnect"])
async def test_a_connect_that_waits_for_its_server_is_ended(how):
    port = free_port()
    client = GenericEnvClient(f"127.0.0.1:{port}")
    connecting = asyncio.ensure_future(client.connect(retry_s=20))
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.5):
        await getattr(client, how)()
        await told(connecting)

    assert client._ws is None
    async with scripted(port) as server:  # what comes later begins anew
        assert 0 == server.sessions
        await client.reset()
        await client.close()


@pytest.mark.parametrize("op", ["reset", "step", "state"])
async def test_calls_that_connect_or_wait_behind_one_are_ended(op):
    async def never(reader, _):
        await reader.read()

    async with raw_server(never) as port:
        client = GenericEnvClient(f"127.0.0.1:{port}")
        arguments = [{"m": 1}] if op == "step" else []
        calls = [
            asyncio.ensure_future(getattr(client, op)(*arguments)) for _ in range(3)
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(0.5):
            await client.close()
            await told(*calls)

        assert client._ws is None


async def test_a_closed_reset_leaves_no_lost_session(server):
    client = GenericEnvClient(server.url)
    resetting = asyncio.ensure_future(client.reset())
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0)
    step = asyncio.ensure_future(client.step({"m": 1}))  # after close: it begins anew
    await told(resetting)
    await closing

    assert 1 == (await step).observation["steps"]
    assert client._ws is not None
    await client.close()
    await nothing_open(server)


async def test_a_reset_that_waits_for_its_own_slot_is_ended():
    async with scripted(capacity=1) as server:
        client = GenericEnvClient(server.url, message_timeout_s=30)
        await client.reset()
        held_up = asyncio.ensure_future(client.step({"sleep": 30}))
        await server.until(lambda: len(server.received) == 2)
        held_up.cancel()
        resetting = asyncio.ensure_future(client.reset())
        await until(lambda: client._home.link._turns)
        await asyncio.sleep(0.05)
        async with asyncio.timeout(2):
            await client.close()
            await told(resetting)


async def test_a_cancellation_of_the_callers_own_stays_one(server):
    client = GenericEnvClient(server.url)
    connecting = asyncio.ensure_future(client.connect())
    await asyncio.sleep(0)
    connecting.cancel()
    await client.close()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await nothing_open(server)


async def test_a_task_whose_connect_was_ended_goes_on(server):
    client = GenericEnvClient(server.url)

    async def insist():
        with pytest.raises(ConnectionClosed, match=CLOSED):
            await client.connect()
        await asyncio.sleep(0.01)
        return asyncio.current_task().cancelling()

    insisting = asyncio.ensure_future(insist())
    await asyncio.sleep(0)
    await client.close()

    assert 0 == await insisting


@pytest.mark.parametrize("turns", range(1, 12))
async def test_children_in_the_making_are_closed(server, turns):
    parent = GenericEnvClient(server.url)
    await parent.connect()
    making = asyncio.ensure_future(parent.new_session())
    for _ in range(turns):
        await asyncio.sleep(0)
    await parent.close()
    outcome = (await asyncio.gather(making, return_exceptions=True))[0]

    assert isinstance(outcome, (ConnectionClosed, GenericEnvClient)), outcome
    assert () == parent._child_clients
    await nothing_open(server)


def test_children_made_by_other_threads_are_closed(server):
    for pause_ms in range(10):
        parent = GenericEnvClient(server.url).sync()
        parent.reset()
        outcomes = []
        threads = [
            threading.Thread(target=_note, args=(parent.new_session, outcomes))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        threading.Event().wait(pause_ms / 1000)
        parent.close()
        for thread in threads:
            thread.join()
        late = [each for each in outcomes if not isinstance(each, ConnectionClosed)]
        still = [each for each in late if each.async_client._ws is not None]

        # Only who asked after the close has one, and the parent knows it.
        known = parent.async_client._child_clients
        assert {id(each.async_client) for each in still} == {id(c) for c in known}
        parent.close()

        assert all(each.async_client._ws is None for each in late)


def _note(function, outcomes):
    try:
        outcomes.append(function())
    except ConnectionClosed as exc:
        outcomes.append(exc)


@pytest.mark.parametrize("turns", range(1, 6))
async def test_a_cancelled_close_closes_all_the_same(server, turns):
    parent = GenericEnvClient(server.url)
    await parent.reset()
    for _ in range(4):
        await (await parent.new_session()).reset()
    closing = asyncio.ensure_future(parent.close())
    for _ in range(turns):
        await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert () == parent._child_clients
    await nothing_open(server)


@pytest.mark.parametrize("turns", range(1, 4))
async def test_so_does_a_cancelled_disconnect_of_another_loop(server, turns):
    client = GenericEnvClient(server.url, io="thread")
    await client.reset()
    closing = asyncio.ensure_future(client.disconnect())
    for _ in range(turns):
        await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    await nothing_open(server)
