"""A client of tools, and an environment that offers them."""

from __future__ import annotations

from typing import Any, assert_type

from openenv.core import MCPToolClient
from openenv.core.env_server import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    MCPEnvironment,
    Observation,
    State,
    Tool,
    create_app,
)


class Calculator(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(object())
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Observation:
        return Observation()

    def _step_impl(
        self, action: Any, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        return Observation()

    @property
    def state(self) -> State:
        return self._state


create_app(Calculator, CallToolAction, CallToolObservation)


async def calling() -> None:
    async with MCPToolClient("http://h") as env:
        assert_type(await env.list_tools(), list[Tool])
        assert_type((await env.list_tools())[0].input_schema, dict[str, Any])
        assert_type(await env.get_tool("add"), Tool | None)
        assert_type(await env.has_tool("add"), bool)
        # reveals: Any
        reveal_type(await env.call_tool("add", a=1, b=2))
        action = CallToolAction(tool_name="add", arguments={"a": 1})
        # reveals: StepResult[Observation]
        reveal_type(await env.step(action))
        observation = (await env.step(ListToolsAction())).observation
        if isinstance(observation, CallToolObservation):
            assert_type(observation.tool_name, str)
        await env.call_tool()  # expect: call-arg, reportCallIssue
        # expect: call-arg, reportCallIssue
        CallToolAction(tool="add")
