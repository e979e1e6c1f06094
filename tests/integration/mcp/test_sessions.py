"""Sessions that HTTP requests hold by their id, and the WebSocket that joins one."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from tests.integration.mcp.tools import Tools, http, serving_tools
from tests.integration.server.hosting import (
    CLOSE,
    RESET,
    STATE,
    EchoEnvironment,
    ask,
    close_code,
    serving,
    step,
    until,
)
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from openenv.core.env_server import CallToolAction, CallToolObservation
from openenv.core.env_server.types import ConcurrencyConfig


@pytest.fixture
def tools():
    return Tools.variant()


def data(answer):
    return answer["result"]["data"]


async def create(rpc):
    return (await rpc("openenv/session/create"))["result"]["session_id"]


def join(server, session_id):
    url = f"{server.ws_url}?session_id={session_id}"
    return connect(url, compression=None, proxy=None)


async def test_http_requests_and_a_websocket_share_a_session(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            session_id = await create(rpc)
            first = await rpc("tools/call", name="count", session_id=session_id)
            async with join(server, session_id) as ws:
                await ask(ws, RESET)
                stepped = await ask(ws, step(type="call_tool", tool_name="count"))
                await ws.send(CLOSE)
                await until(lambda: ws.close_code == 1000)
            last = await rpc("tools/call", name="count", session_id=session_id)
            remembered = [
                await rpc("tools/call", name="remember", session_id=session_id)
                for _ in range(2)
            ]

    assert (1, 3) == (data(first), data(last))
    assert 2 == stepped["data"]["observation"]["result"]["data"]
    assert [1, 2] == [data(answer) for answer in remembered]
    assert 1 == len(tools.instances)


async def test_without_a_session_each_request_has_an_environment_and_closes_it(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            answers = [await rpc("tools/call", name="count") for _ in range(2)]
            await until(lambda: all(each.closed.is_set() for each in tools.instances))

    assert [1, 1] == [data(answer) for answer in answers]
    assert 2 == len(tools.instances)


async def test_one_websocket_at_a_time_joins_a_session_that_exists(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            session_id = await create(rpc)
            async with join(server, session_id) as ws:
                await ask(ws, STATE)
                refusals = [
                    await refusal(server, session_id),
                    await refusal(server, "nobody"),
                ]
                alive = await ask(ws, STATE)

    assert [
        f"Session {session_id} already has an attached WebSocket",
        "Unknown session_id: nobody",
    ] == [message for message, _ in refusals]
    assert {"SESSION_ERROR"} == {code for _, code in refusals}
    assert "state" == alive["type"]


async def refusal(server, session_id):
    async with join(server, session_id) as ws:
        answer = json.loads(await ws.recv())
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert 1011 == close_code(ws)
    return answer["data"]["message"], answer["data"]["code"]


async def test_a_close_waits_for_the_websocket_and_the_session_answers_meanwhile(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            session_id = await create(rpc)
            async with join(server, session_id) as ws:
                await ask(ws, STATE)
                told = await rpc("openenv/session/close", session_id=session_id)
                meanwhile = await rpc("tools/call", name="count", session_id=session_id)
            await until(lambda: server.server.active_sessions == 0)
            gone = await rpc("tools/call", name="count", session_id=session_id)

    expected = {"session_id": session_id, "closed": False, "closing": True}
    assert expected == told["result"]
    assert 1 == data(meanwhile)
    assert f"Unknown session_id: {session_id}" == gone["error"]["message"]


async def test_a_close_during_a_call_lets_it_finish(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            session_id = await create(rpc)
            named = {"session_id": session_id}
            calling = asyncio.create_task(rpc("tools/call", name="wait", **named))
            await until(tools.entered.is_set)
            closing = asyncio.create_task(rpc("openenv/session/close", **named))
            await until(lambda: session_id not in server.server.held_sessions._held)
            second = await rpc("openenv/session/close", **named)
            tools.gate.set()
            called, closed = await calling, await closing

    assert "waited" == data(called)
    assert {"session_id": session_id, "closed": True} == closed["result"]
    assert -32602 == second["error"]["code"]
    assert tools.instances[0].closed.is_set()


async def test_a_websocket_that_vanishes_during_a_step_leaves_the_session(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            session_id = await create(rpc)
            async with join(server, session_id) as ws:
                await ws.send(step(type="call_tool", tool_name="wait_async"))
                await until(tools.entered.is_set)
                ws.transport.abort()
            held = server.server.held_sessions._held[session_id]
            await until(lambda: not held.attached)
            runs_on = held.session.busy
            waiting = asyncio.create_task(
                rpc("tools/call", name="count", session_id=session_id)
            )
            tools.gate.set()
            answer = await waiting

    assert runs_on
    assert 1 == data(answer)


async def test_an_idle_session_is_closed_and_gives_its_slot_back(tools):
    config = ConcurrencyConfig(max_concurrent_envs=1, session_timeout=0.3)
    with serving_tools(
        tools, max_concurrent_envs=None, concurrency_config=config
    ) as server:
        async with http(server) as rpc:
            await create(rpc)
            full = await rpc("openenv/session/create")
            await until(lambda: server.server.active_sessions == 0)
            again = await rpc("openenv/session/create")

    counts = {"active_sessions": 1, "max_sessions": 1}
    assert (-32000, counts) == (full["error"]["code"], full["error"]["data"])
    assert "result" in again
    assert tools.instances[0].closed.is_set()


async def test_an_idle_session_with_a_websocket_is_kept(tools):
    config = ConcurrencyConfig(max_concurrent_envs=2, session_timeout=1.0)
    with serving_tools(
        tools, max_concurrent_envs=None, concurrency_config=config
    ) as server:
        async with http(server) as rpc:
            kept = await create(rpc)
            async with join(server, kept) as ws:
                await ask(ws, STATE)
                other = await create(rpc)
                held = server.server.held_sessions._held
                await until(lambda: other not in held)
                await until(lambda: held[kept].session.idle_s > 1.1)
                answer = await ask(ws, STATE)

    assert "state" == answer["type"]


async def test_without_a_session_timeout_an_idle_session_still_ends(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            held = server.server.held_sessions._held[await create(rpc)]
            timeout_s, timer = held.session.timeout_s, held.session._timer

    assert 900.0 == timeout_s
    assert timer is not None


async def test_the_end_of_the_server_closes_the_sessions_it_holds(tools):
    with serving_tools(tools) as server:
        async with http(server) as rpc:
            await create(rpc)

    assert tools.instances[0].closed.is_set()


async def test_a_websocket_of_its_own_tells_its_session_and_keeps_it(tools):
    def rpc(method, **params):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return {"type": "mcp", "data": request}

    with serving_tools(tools) as server:
        async with server.session() as ws:
            created = await ask(ws, rpc("openenv/session/create"))
            session_id = created["data"]["result"]["session_id"]
            closed = await ask(ws, rpc("openenv/session/close", session_id=session_id))
            known = server.server.get_session_info(session_id)

    text = "Cannot close active WebSocket-managed session via MCP method"
    assert text == closed["data"]["error"]["message"]
    assert known is not None


async def test_steps_that_take_tool_actions_answer_json_rpc_whatever_they_return():
    returned = iter(
        [
            CallToolObservation(tool_name="t", result=np.arange(2)),
            CallToolObservation(tool_name="t", result=object()),
            CallToolObservation(tool_name="t"),
        ]
    )
    environment = EchoEnvironment.variant(step=lambda *_: next(returned))
    with serving(environment, CallToolAction, CallToolObservation) as server:
        async with http(server) as rpc:
            array = await rpc("tools/call", name="t")
            opaque = await rpc("tools/call", name="t")
            wrong = await rpc("tools/list")
            exhausted = await rpc("tools/list")

    assert [0, 1] == array["result"]["result"]
    assert "result.result" in opaque["error"]["message"]
    assert "expected ListToolsObservation" in wrong["error"]["message"]
    assert -32603 == exhausted["error"]["code"]
