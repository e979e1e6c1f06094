"""Tools through our client: by name and as steps, in one environment."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import pytest
from fastmcp import FastMCP
from tests.integration.mcp.tools import Tools, serving_tools
from tests.integration.server.hosting import serving, until

from openenv.core import MCPToolClient
from openenv.core.env_server import CallToolAction, ListToolsAction, ToolErrorType
from openenv.errors import ConnectFailed

TOOLS = ["count", "remember", "wait", "wait_async", "fail"]


def call(name, **arguments):
    return CallToolAction(tool_name=name, arguments=arguments)


async def test_calls_by_name_and_steps_meet_one_environment():
    tools = Tools.variant()
    with serving_tools(tools) as server:
        async with MCPToolClient(server.url) as client:
            await client.reset()
            by_name = await client.call_tool("count")
            step = await client.step(call("count"))
            again = await client.call_tool("count")

    assert (1, 2, 3) == (by_name, step.observation.result["data"], again)
    assert 1 == len(tools.instances)


async def test_tools_are_listed_by_name_and_by_a_step():
    with serving_tools(Tools.variant()) as server:
        async with MCPToolClient(server.url) as client:
            listed = await client.list_tools()
            stepped = await client.step(ListToolsAction())
            missing = await client.get_tool("nope")
            found = await client.has_tool("count")

    assert TOOLS == [tool.name for tool in listed]
    assert listed == stepped.observation.tools
    assert (None, True) == (missing, found)
    assert {"text": {"type": "string"}} == listed[-1].input_schema["properties"]


async def test_state_of_the_mcp_session_is_the_sessions_own():
    with serving_tools(Tools.variant()) as server:
        async with MCPToolClient(server.url) as one, MCPToolClient(server.url) as other:
            first = [await one.call_tool("remember") for _ in range(2)]
            step = await one.step(call("remember"))
            foreign = await other.call_tool("remember")

    assert ([1, 2], 3, 1) == (first, step.observation.result["data"], foreign)


async def test_only_what_needs_an_mcp_session_gets_one_and_close_ends_it():
    tools = Tools.variant()
    with serving_tools(tools) as server:
        async with MCPToolClient(server.url) as client:
            await client.call_tool("count")
            [environment] = tools.instances
            mcp_client = environment.mcp_client
            before = mcp_client.is_connected()
            await client.call_tool("remember")
            after = mcp_client.is_connected()
        await until(lambda: not mcp_client.is_connected())

    assert (False, True) == (before, after)


async def test_a_servers_lifespan_surrounds_its_tools():
    @asynccontextmanager
    async def lifespan(_server):
        log.append("begin")
        yield
        log.append("end")

    def make_server(_self):
        made = FastMCP("with a lifespan", lifespan=lifespan)
        made.tool(lambda: log.append("call"), name="note")
        return made

    log = []
    with serving_tools(Tools.variant(make_server=make_server)) as server:
        async with MCPToolClient(server.url) as client:
            await client.call_tool("note")
            await client.call_tool("note")
        await until(lambda: "end" in log)

    assert ["begin", "call", "call", "end"] == log


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "text"),
    [
        ("nope", {}, ToolErrorType.TOOL_NOT_FOUND, "Unknown tool: 'nope'"),
        ("fail", {}, ToolErrorType.INVALID_ARGS, "Missing required argument"),
        ("fail", {"text": "boom"}, ToolErrorType.EXECUTION_ERROR, "boom"),
    ],
)
async def test_failures_are_observations_of_steps_and_errors_of_calls(
    name, arguments, kind, text
):
    with serving_tools(Tools.variant()) as server:
        async with MCPToolClient(server.url) as client:
            step = await client.step(call(name, **arguments))
            with pytest.raises(RuntimeError, match=f"Tool '{name}' failed: ") as raised:
                await client.call_tool(name, **arguments)
            alive = await client.call_tool("count")

    assert kind is step.observation.error.error_type
    assert text in step.observation.error.message
    assert text in str(raised.value)
    assert 1 == alive


@pytest.mark.parametrize("name", ["wait", "wait_async"])
async def test_a_tool_that_hangs_is_given_up_and_the_session_lives(name):
    def step(self, action, timeout_s=None, **kwargs):
        limit_s = 0.2 if action.tool_name == name else timeout_s
        return Tools.step_async(self, action, limit_s, **kwargs)

    tools = Tools.variant(step_async=step)
    with serving_tools(tools) as server:
        async with MCPToolClient(server.url) as client:
            began = time.monotonic()
            hung = await client.step(call(name))
            next_one = await client.step(call("count"))
            took_s = time.monotonic() - began
            tools.gate.set()

    assert ToolErrorType.TIMEOUT is hung.observation.error.error_type
    assert (
        f"Tool '{name}' timed out after 0.2 seconds" == hung.observation.error.message
    )
    assert 1 == next_one.observation.result["data"]
    assert took_s < 10  # the gate would have been waited for 20 s


async def test_a_failure_to_list_is_raised_not_an_empty_list():
    with serving() as server:
        async with MCPToolClient(server.url) as client:
            with pytest.raises(RuntimeError, match="does not support MCP"):
                await client.list_tools()
    with pytest.raises(ConnectFailed):
        await MCPToolClient(server.url).list_tools()


def test_the_blocking_face():
    with (
        serving_tools(Tools.variant()) as server,
        MCPToolClient(server.url).sync() as client,
    ):
        assert TOOLS == [tool.name for tool in client.list_tools()]
        assert 1 == client.call_tool("count")
        assert 2 == client.step(call("count")).observation.result["data"]


def test_without_a_server_steps_block_and_each_has_an_mcp_session_of_its_own():
    tools = Tools.variant()()

    results = [tools.step(call(name)) for name in ("count", "remember", "remember")]

    assert [1, 1, 1] == [each.result.data for each in results]
    assert not tools.mcp_client.is_connected()


async def test_tools_of_a_mode_are_offered_in_that_mode():
    def make(self):
        Tools.__init__(self)
        self._mode = "simulation"
        self.tool(mode="simulation")(hint)
        self.tool(mode="production")(secret)

    def hint(level: int, loud: bool = False) -> str:
        """Give a hint."""
        return f"{level} {loud}"

    def secret() -> str:
        return "never"

    with serving_tools(Tools.variant(__init__=make)) as server:
        async with MCPToolClient(server.url) as client:
            listed = (await client.step(ListToolsAction())).observation.tools
            hinted = await client.step(call("hint", level=3))
            refused = await client.step(call("secret"))

    assert [*TOOLS, "hint"] == [tool.name for tool in listed]
    assert {
        "type": "object",
        "properties": {"level": {"type": "integer"}, "loud": {"type": "boolean"}},
        "required": ["level"],
    } == listed[-1].input_schema
    assert "3 False" == hinted.observation.result["data"]
    assert ToolErrorType.TOOL_NOT_FOUND is refused.observation.error.error_type


@pytest.mark.parametrize("name", ["reset", "step", "state", "close"])
def test_reserved_names_are_refused(name):
    server = FastMCP("reserved")
    server.tool(lambda: None, name=name)

    with pytest.raises(ValueError, match=f"reserved names: \\['{name}'\\]"):
        Tools.variant(make_server=lambda _self: server)()


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="Invalid mode 'training'"):
        Tools.variant()().tool(mode="training")


def test_code_calls_tools_as_functions():
    tools = Tools.variant(make_server=lambda _self: adder())()

    right = tools.execute_code("result = add(1, 2)")
    wrong = tools.execute_code("result = add(1)")
    broken = tools.execute_code("result =")

    assert {"result": 3} == right.metadata
    assert "missing 1 required positional argument" in wrong.metadata["error"]
    assert broken.metadata["error"].startswith("Syntax error: ")


def adder():
    server = FastMCP("adder")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    return server


async def test_another_mode_than_production_is_refused():
    with pytest.raises(ValueError, match="only supports 'production' mode"):
        MCPToolClient("http://localhost:1", mode="simulation")


async def test_four_calls_at_once_are_answered_in_their_order():
    with serving_tools(Tools.variant()) as server:
        async with MCPToolClient(server.url) as client:
            calls = [client.call_tool("count") for _ in range(4)]
            numbers = await asyncio.gather(*calls)

    assert [1, 2, 3, 4] == numbers


def test_the_client_loads_neither_fastmcp_nor_a_web_framework():
    code = (
        "import sys; from openenv.core import MCPToolClient; "
        "print(sorted({'fastmcp', 'mcp', 'fastapi', 'httpx'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]\n" == run.stdout


def test_without_fastmcp_the_extra_is_named():
    code = (
        "import sys; sys.modules['fastmcp'] = None; "
        "from openenv.core.env_server import MCPEnvironment"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert "pip install 'openenv[mcp]'" in run.stderr.splitlines()[-1]
