"""What a client does when its connection, and so its session, is gone."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.client.scripted import cut, free_port, scripted, until

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import (
    CapacityReached,
    ConnectFailed,
    ConnectionClosed,
    FactoryFailed,
    SessionExpired,
    SessionLost,
)


async def cut_all(server) -> None:
    for connection in list(server.connections):
        cut(connection.transport)
    await server.until(lambda: not server.connections)


async def lost(client) -> None:
    await until(lambda: not client._home.link.connection.is_open)


async def connect_and_reset(client):
    await client.connect()
    await client.reset()


async def test_after_a_drop_step_and_state_refuse_until_reset():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        await cut_all(server)
        await lost(client)
        with pytest.raises(SessionLost, match="call reset"):
            await client.step({"it": 1})
        with pytest.raises(RuntimeError):
            await client.state()
        again = await client.reset()
        step = await client.step({"it": 2})

    assert 2 == again.observation["session"] == step.observation["session"]
    assert 1 == step.observation["steps"]


async def test_a_call_in_flight_fails_as_closed_and_the_next_as_lost():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(ConnectionClosed) as closed:
            await client.step({"drop": 1})
        with pytest.raises(SessionLost):
            await client.step({"it": 1})

    assert 1006 == closed.value.code


async def test_the_close_code_and_reason_of_the_server_are_told():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(ConnectionClosed) as closed:
            await client.step({"close": 4321})
        with pytest.raises(SessionLost, match="4321"):
            await client.state()

    assert (4321, "told to") == (closed.value.code, closed.value.reason)


async def test_a_server_restarted_on_its_port_is_found_again_by_reset():
    port = free_port()
    async with scripted(port) as first:
        client = GenericEnvClient(first.url)
        await client.reset()
    await lost(client)
    with pytest.raises(ConnectFailed):
        await client.reset()
    async with scripted(port):
        with pytest.raises(SessionLost):
            await client.step({"it": 0})
        again = await client.reset(it="again")
        step = await client.step({"it": 1})
        await client.close()

    assert "again" == again.observation["echo"]["it"]
    assert 1 == step.observation["session"]


async def test_a_reset_finds_out_by_itself_that_the_server_went():
    # The drop lies unread in the socket when the reset is sent.
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        for connection in list(server.connections):
            cut(connection.transport)
        again = await client.reset()

    assert 2 == again.observation["session"]


async def test_a_reset_that_ends_the_connection_is_not_sent_for_ever():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(ConnectionClosed):
            await client.reset(drop=True)

    assert 3 == sum(m["type"] == "reset" for m in server.received)


async def test_a_connection_that_carried_nothing_is_replaced_without_a_word():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await cut_all(server)
        await lost(client)
        step = await client.step({"it": 1})

    assert 2 == step.observation["session"]


async def test_connecting_again_does_not_make_a_lost_session_good():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        await cut_all(server)
        await lost(client)
        await client.connect()
        with pytest.raises(SessionLost):
            await client.step({"it": 1})
        await client.reset()
        assert 2 == (await client.step({"it": 1})).observation["session"]


async def test_a_reset_that_failed_after_a_loss_leaves_it_lost():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        await cut_all(server)
        await lost(client)
        with pytest.raises(RuntimeError):
            await client.reset(error="EXECUTION_ERROR")
        with pytest.raises(SessionLost):
            await client.step({"it": 1})
        await client.reset()
        await client.step({"it": 1})


async def test_a_closed_client_is_as_new():
    async with scripted() as server:
        client = GenericEnvClient(server.url)
        await client.reset()
        await client.close()
        step = await client.step({"it": 1})
        await client.disconnect()
        await client.close()

    assert 2 == step.observation["session"]
    assert 2 == server.said_goodbye


async def test_a_refused_client_works_once_a_slot_is_free():
    async with scripted(capacity=1) as server:
        holder, late = GenericEnvClient(server.url), GenericEnvClient(server.url)
        await holder.reset()
        with pytest.raises(CapacityReached):
            await late.reset()
        with pytest.raises(SessionLost, match="at capacity"):
            await late.step({"it": 1})
        await holder.close()
        await server.until(lambda: not server.active)
        again = await late.reset()
        await late.close()

    assert 2 == again.observation["session"]


async def test_a_client_that_only_steps_works_once_a_slot_is_free():
    async with scripted(capacity=1) as server:
        holder, late = GenericEnvClient(server.url), GenericEnvClient(server.url)
        await holder.reset()
        with pytest.raises(CapacityReached):
            await late.step({"it": 1})
        await holder.close()
        await server.until(lambda: not server.active)
        step = await late.step({"it": 1})
        await late.close()

    assert 1 == step.observation["steps"]


async def test_a_refusal_that_comes_with_the_upgrade_is_raised_by_connect():
    async with scripted(capacity=0) as server:
        client = GenericEnvClient(server.url)
        for _ in range(3):  # in time or late: the answer is the same one
            with pytest.raises(CapacityReached) as refused:
                await connect_and_reset(client)

            assert 0 == refused.value.max_sessions
            assert client._home.link.connection is None


async def test_a_refusal_that_comes_late_is_raised_by_the_first_call():
    async with scripted(capacity=0, refuse_late=True) as server:
        client = GenericEnvClient(server.url)
        await client.connect()
        with pytest.raises(CapacityReached, match=r"Server error: Server at capacity"):
            await client.reset()


async def test_one_client_after_the_other_on_a_server_with_one_slot():
    async with scripted(capacity=1) as server:
        client = GenericEnvClient(server.url)
        for number in range(1, 6):
            result = await client.reset()
            assert number == result.observation["session"]
            await client.close()


@pytest.mark.parametrize(
    ("code", "error"),
    [("SESSION_EXPIRED", SessionExpired), ("FACTORY_ERROR", FactoryFailed)],
)
async def test_an_error_that_ends_the_session_loses_it(code, error):
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(error):
            await client.step({"error": code})
        with pytest.raises(SessionLost, match=code):
            await client.step({"it": 1})
        await client.reset()


async def test_a_server_that_closes_in_silence_loses_an_idle_session():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        for connection in list(server.connections):
            await connection.close(1001, "going away")
        await lost(client)
        with pytest.raises(SessionLost, match="1001: going away"):
            await client.step({"it": 1})


async def test_calls_behind_a_reset_that_never_was_are_not_made():
    client = GenericEnvClient(f"http://127.0.0.1:{free_port()}")
    outcomes = await asyncio.gather(
        client.reset(), client.step({}), client.state(), return_exceptions=True
    )

    expected = [ConnectFailed, SessionLost, SessionLost]
    assert expected == [type(outcome) for outcome in outcomes]
