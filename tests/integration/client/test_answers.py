"""Whose answer is it: late, cancelled, concurrent and abandoned calls."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.integration.client.scripted import scripted, until

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import (
    CapacityReached,
    ConnectionClosed,
    ExecutionFailed,
    RequestTimeout,
)


def echo(result):
    return result.observation["echo"]["it"]


async def test_a_timed_out_step_never_gives_its_answer_to_the_next_call():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(RequestTimeout) as timeout:
            await client.step({"it": "FIRST", "sleep": 0.3}, timeout_s=0.05)
        second = await client.step({"it": "SECOND"})
        state = await client.state()

    assert "SECOND" == echo(second)
    assert {"session": 1, "steps": 2} == state
    assert "step" == timeout.value.operation
    assert 0.05 == pytest.approx(timeout.value.timeout_s, abs=0.01)


async def test_a_late_answer_that_came_while_nobody_called_is_dropped_too():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(RequestTimeout):
            await client.step({"it": "FIRST", "sleep": 0.1}, timeout_s=0.02)
        connection = client._home.link.connection
        await until(lambda: not connection.owed)
        second = await client.step({"it": "SECOND"})

    assert "SECOND" == echo(second)
    assert 1 == server.sessions


async def test_a_cancelled_step_never_gives_its_answer_to_the_next_call():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.step({"it": "OLD", "sleep": 0.3}), 0.05)
        new = await client.step({"it": "NEW"})

    assert "NEW" == echo(new)
    assert 1 == new.observation["session"]


async def test_a_step_cancelled_before_it_was_sent_is_never_sent():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        first = asyncio.create_task(client.step_async({"it": 1, "sleep": 0.1}))
        queued = asyncio.create_task(client.step_async({"it": 2}))
        await server.until(lambda: len(server.received) == 2)
        queued.cancel()
        last = await client.step({"it": 3})
        await first

    sent = [m["data"]["it"] for m in server.received if m["type"] == "step"]
    assert [1, 3] == sent
    assert 3 == echo(last)


async def test_four_calls_at_once_are_served_in_order():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        results = await asyncio.gather(*(client.step({"it": n}) for n in range(4)))

    assert [0, 1, 2, 3] == [echo(result) for result in results]
    assert [1, 2, 3, 4] == [result.observation["steps"] for result in results]


async def test_calls_on_a_client_that_has_yet_to_connect_are_served_in_order():
    async with scripted() as server:
        client = GenericEnvClient(server.url)
        tasks = [client.reset(it="r"), *(client.step({"it": n}) for n in range(4))]
        results = await asyncio.gather(*tasks)
        await client.close()

    assert ["r", 0, 1, 2, 3] == [echo(result) for result in results]
    assert 1 == server.sessions


async def test_each_call_of_many_clients_gets_its_own_answer():
    async with scripted() as server:
        clients = [GenericEnvClient(server.url) for _ in range(20)]

        async def play(number, client):
            async with client:
                await client.reset()
                return [echo(await client.step({"it": (number, n)})) for n in range(20)]

        played = await asyncio.gather(*(play(n, c) for n, c in enumerate(clients)))

    assert [[[n, m] for m in range(20)] for n in range(20)] == played


async def test_a_reset_does_not_wait_behind_a_hung_step():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(RequestTimeout):
            await client.step({"it": 1, "sleep": 30}, timeout_s=0.05)
        started = time.monotonic()
        again = await client.reset(it="again")
        step = await client.step({"it": 2})

    assert 5 > time.monotonic() - started
    assert ("again", 2) == (echo(again), echo(step))
    assert 2 == again.observation["session"] == step.observation["session"]


async def test_a_reset_after_a_hung_step_waits_for_its_own_slot_of_a_full_server():
    async with scripted(capacity=1) as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(RequestTimeout):
            await client.step({"it": 1, "sleep": 0.4}, timeout_s=0.05)
        again = await client.reset(it="again")

    assert 2 == again.observation["session"]


async def test_close_never_waits_for_a_hung_step():
    async with scripted() as server:
        client = GenericEnvClient(server.url)
        await client.reset()
        with pytest.raises(RequestTimeout):
            await client.step({"it": 1, "sleep": 30}, timeout_s=0.05)
        started = time.monotonic()
        await client.close()

        assert 0.5 > time.monotonic() - started


async def test_close_fails_what_still_waits():
    async with scripted() as server:
        client = GenericEnvClient(server.url)
        await client.reset()
        hung = asyncio.create_task(client.step_async({"it": 1, "sleep": 30}))
        await server.until(lambda: len(server.received) == 2)
        await client.close()
        with pytest.raises(ConnectionClosed):
            await hung


async def test_an_error_answer_belongs_to_its_call_and_the_session_lives_on():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        outcomes = await asyncio.gather(
            client.step({"it": 1}),
            client.step({"error": "EXECUTION_ERROR"}),
            client.step({"it": 3}),
            return_exceptions=True,
        )

    assert [1, 3] == [echo(outcomes[0]), echo(outcomes[2])]
    assert isinstance(outcomes[1], ExecutionFailed)
    assert "Server error: no (code: EXECUTION_ERROR)" == str(outcomes[1])


async def test_a_refusal_is_raised_at_once_when_the_slot_is_not_ours():
    async with scripted(capacity=1) as server, GenericEnvClient(server.url) as holder:
        await holder.reset()
        late = GenericEnvClient(server.url)
        with pytest.raises(CapacityReached) as refused:
            await late.reset()
        await late.close()

    assert (1, 1) == (refused.value.active_sessions, refused.value.max_sessions)


async def test_a_payload_without_a_wire_form_leaves_the_session_as_it_is():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        await client.reset()
        with pytest.raises(TypeError, match="object"):
            await client.step({"it": object()})
        step = await client.step({"it": 1})

    assert (1, 1) == (echo(step), step.observation["steps"])


async def test_the_message_timeout_holds_for_reset_and_state_too():
    async with scripted() as server, GenericEnvClient(server.url) as client:
        client._message_timeout = 0.05
        with pytest.raises(
            RequestTimeout, match=r"reset was not answered within 0\.05 s"
        ):
            await client.reset(sleep=0.2)
        with pytest.raises(TimeoutError):
            await client.state()


async def test_without_a_message_timeout_a_call_waits_as_long_as_it_takes():
    async with scripted() as server:
        client = GenericEnvClient(server.url, message_timeout_s=None)
        result = await client.reset(it=1, sleep=0.1)
        await client.close()

    assert 1 == echo(result)
