"""The protected members that subclasses and tests of upstream's users rely on."""

from __future__ import annotations

import asyncio
import json
from unittest.mock import AsyncMock, patch

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from websockets.asyncio.client import connect

from openenv.core.client_types import StepResult
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from openenv.errors import (
    ExecutionFailed,
    RequestTimeout,
    ServerError,
    SessionLost,
)

ANSWER = {
    "type": "observation",
    "data": {"observation": {"made": "up"}, "reward": 1.0, "done": True},
}


@pytest.fixture
def server():
    with scripted_in_thread() as server:
        yield server


class Chatty(GenericEnvClient):
    """Note what goes out and comes in."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = []

    async def _send(self, message):
        self.seen.append(message["type"])
        await super()._send(message)

    async def _receive(self):
        answer = await super()._receive()
        self.seen.append(answer["type"])
        return answer


class OwnSocket(GenericEnvClient):
    """Connect by itself, as upstream's unity environment does."""

    async def connect(self):
        if self._ws is None:
            self._ws = await connect(
                self._ws_url,
                open_timeout=self._connect_timeout,
                max_size=self._max_message_size,
                compression=None,
                proxy=None,
            )
        return self


async def test_own_send_and_receive_carry_every_call(server):
    async with Chatty(server.url) as client:
        await client.reset(seed=1)
        result = await client.step({"it": 2})
        await client.state()

    assert {"it": 2} == result.observation["echo"]
    assert ["reset", "observation", "step", "observation", "state", "state"] == (
        client.seen
    )


def test_they_do_so_for_callers_that_block(server):
    client = Chatty(server.url)
    client.reset()
    assert 1 == client.step({"it": 1}).observation["steps"]
    with client.sync() as face:
        assert 2 == face.step({"it": 2}).observation["steps"]

    assert ["reset", "observation"] + 2 * ["step", "observation"] == client.seen


async def test_calls_of_one_client_stay_in_order_the_slow_way_too(server):
    async with Chatty(server.url) as client:
        await client.reset()
        steps = await asyncio.gather(*(client.step({"it": n}) for n in range(9)))

    assert list(range(9)) == [step.observation["echo"]["it"] for step in steps]


async def test_errors_of_the_server_are_messages_and_then_errors(server):
    async with Chatty(server.url) as client:
        await client.reset()
        with pytest.raises(ExecutionFailed, match="no"):
            await client.step({"error": "EXECUTION_ERROR"})
        await client._send({"type": "step", "data": {"error": "EXECUTION_ERROR"}})
        answer = await client._receive()

    assert "error" == client.seen[-1]
    assert ("error", "EXECUTION_ERROR") == (answer["type"], answer["data"]["code"])


async def test_methods_of_an_instance_may_be_replaced_by_mocks():
    client = GenericEnvClient("http://nobody.example")
    client._send = AsyncMock()
    client._receive = AsyncMock(return_value=ANSWER)

    result = await client.step({"a": 1})

    assert StepResult({"made": "up"}, 1.0, True) == result
    client._send.assert_awaited_once_with({"type": "step", "data": {"a": 1}})
    client._receive.return_value = {"type": "error"}
    with pytest.raises(ServerError, match="Unknown error"):
        await client.reset()


async def test_methods_of_the_class_may_be_replaced_while_it_is_used(server):
    async with GenericEnvClient(server.url) as client:
        await client.reset()
        await client.step({})
        with (
            patch.object(GenericEnvClient, "_send", AsyncMock()),
            patch.object(GenericEnvClient, "_receive", AsyncMock(return_value=ANSWER)),
        ):
            made_up = await client.step({})
        real = await client.step({})

    assert {"made": "up"} == made_up.observation
    assert 2 == real.observation["steps"]


async def test_single_messages_go_over_the_clients_own_connection(server):
    async with GenericEnvClient(server.url) as client:
        answer = await client._send_and_receive({"type": "reset", "data": {"seed": 4}})
        await client._send({"type": "step", "data": {"it": 1}})
        await client._send({"type": "state"})
        step, state = await client._receive(), await client._receive()
        with pytest.raises(RuntimeError, match="without a _send"):
            await client._receive()
        with pytest.raises(ValueError, match="no message of the type 'sing'"):
            await client._send({"type": "sing"})
        await client._send({"type": "close"})
        assert client._ws is None

    assert ("observation", {"seed": 4}) == (
        answer["type"],
        answer["data"]["observation"]["echo"],
    )
    assert {"it": 1} == step["data"]["observation"]["echo"]
    assert {"type": "state", "data": {"session": 1, "steps": 1}} == state


@pytest.mark.parametrize("blocking", [False, True])
def test_a_subclass_may_bring_a_socket_of_its_own(server, blocking):
    client = OwnSocket(server.url)
    if blocking:
        with client.sync() as face:
            face.reset()
            result = face.step({"it": 1})
    else:

        async def use():
            async with client:
                await client.reset()
                assert client._ws is not None
                return await client.step({"it": 1})

        result = asyncio.run(use())

    assert {"it": 1} == result.observation["echo"]
    assert client._ws is None
    assert 1 == server.said_goodbye


async def test_a_mock_socket_is_spoken_to_in_json():
    client = GenericEnvClient("http://nobody.example")
    client._ws = AsyncMock()
    client._ws.recv.return_value = json.dumps(ANSWER)

    assert client is await client.connect()
    result = await client.step({"a": b"\x00"})
    socket = client._ws
    await client.close()

    assert {"made": "up"} == result.observation
    sent = [json.loads(call.args[0]) for call in socket.send.await_args_list]
    assert ["step", "close"] == [message["type"] for message in sent]
    socket.close.assert_awaited_once()
    assert client._ws is None


@pytest.mark.parametrize("how", ["message timeout", "step timeout", "cancelled"])
async def test_a_late_answer_of_an_own_socket_reaches_nobody(server, how):
    client = await OwnSocket(server.url).connect()
    await client.reset()
    if how == "message timeout":
        client._message_timeout = 0.05
    timeout_s = 0.05 if how == "step timeout" else None
    step = client.step({"it": "old", "sleep": 0.3}, timeout_s=timeout_s)
    with pytest.raises(TimeoutError if how == "cancelled" else RequestTimeout):
        await asyncio.wait_for(step, 0.2)
    client._message_timeout = 5
    with pytest.raises(SessionLost, match="given up"):
        await client.step({"it": "new"})

    await client.connect()
    await client.reset()
    assert "new" == (await client.step({"it": "new"})).observation["echo"]["it"]
    await client.close()


async def test_the_socket_is_there_while_connected_and_may_be_taken_away(server):
    client = GenericEnvClient(server.url)
    assert client._ws is None
    await client.connect()
    assert client._ws is not None
    await client.reset()
    client._ws = None
    await server_forgets(server)
    assert client._ws is None
    with pytest.raises(SessionLost):
        await client.step({})
    assert 2 == (await client.reset()).observation["session"]
    await client.close()


async def server_forgets(server):
    async with asyncio.timeout(5):
        while server.active:  # noqa: ASYNC110 - in another thread
            await asyncio.sleep(0.005)


async def test_the_internal_steps_call_the_hooks_and_may_be_replaced(server):
    class Wrapped(GenericEnvClient):
        def _serialize_action(self, action):
            return {"it": super()._serialize_action(action)}

        def _parse_step_result(self, payload):
            return super()._parse_step_result(payload).observation["echo"]

    async with Wrapped(server.url) as client:
        assert {} == await client.reset()
        assert {"it": {"a": 1}} == await client.step({"a": 1})
        assert {"it": {"a": 2}} == await client.step({"a": 2})
    plain = GenericEnvClient(server.url)
    assert {"a": 1} == plain._serialize_action({"a": 1})
    assert "x" == plain._parse_step_result({"observation": "x"}).observation


def test_the_names_that_others_read_are_there():
    client = GenericEnvClient("http://h:1/", 2, 3)

    assert ("ws://h:1/ws", "http://h:1") == (client._ws_url, client._base_url)
    assert (2, 3) == (client._connect_timeout, client._message_timeout)
    assert ("simulation", None) == (client._mode, client._provider)
    for name in ("connect", "reset", "step", "state", "close", "disconnect"):
        assert asyncio.iscoroutinefunction(getattr(client, f"_{name}_async"))


async def test_a_tool_client_made_without_its_constructor_can_be_used():
    client = MCPToolClient.__new__(MCPToolClient)
    client._send = AsyncMock()
    tool = {"name": "add", "description": "", "inputSchema": {}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}
    client._receive = AsyncMock(return_value={"type": "mcp", "data": answer})

    assert ["add"] == [tool.name for tool in await client.list_tools()]
    client._receive.return_value = {"type": "mcp", "data": {"result": {"data": 5}}}
    assert 5 == await client.call_tool("add", a=2, b=3)
    assert "tools/call" == client._send.await_args.args[0]["data"]["method"]
