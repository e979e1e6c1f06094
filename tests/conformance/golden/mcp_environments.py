"""The environments with tools that the golden transcripts were recorded with.

They run unchanged in upstream and in this project; both need ``fastmcp``.
"""

# ruff: noqa: ARG002 - upstream's signatures, whatever is used of them

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import (
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
)
from openenv.core.env_server.types import Observation, State


def make_tools() -> FastMCP:
    """The server of the recordings: text, numbers, an object, a failure."""
    server = FastMCP("golden-mcp")

    @server.tool
    def echo(message: str) -> str:
        """Echo a message back."""
        return message

    @server.tool
    def add(a: int, b: int = 2) -> int:
        """Add two ints."""
        return a + b

    @server.tool
    def info(x: str) -> dict:
        """Return a dict."""
        return {"x": x, "n": 1}

    @server.tool
    def fail(message: str) -> str:
        """Always raises."""
        raise ValueError("tool failed: " + message)

    return server


class McpEcho(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(make_tools())
        self._state = State(episode_id=None, step_count=0)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Any:
        self._state = State(episode_id=episode_id or "mcp-ep", step_count=0)
        return Observation(done=False, reward=0.0, metadata={"status": "ready"})

    def _step_impl(
        self, action: Any, timeout_s: float | None = None, **kwargs: Any
    ) -> Any:
        kind = type(action).__name__
        return Observation(done=False, reward=None, metadata={"non_mcp": kind})

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        self._state.step_count += 1
        return super().step(action, timeout_s=timeout_s, **kwargs)

    @property
    def state(self) -> State:
        return self._state


class McpStyleEnvironment(Environment):
    """Has no FastMCP server; its `step` takes the tool actions."""

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Any:
        return Observation()

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        if isinstance(action, ListToolsAction):
            tool = Tool(name="echo", description="d", input_schema={"type": "object"})
            return ListToolsObservation(tools=[tool])
        result = {"args": action.arguments}
        return CallToolObservation(tool_name=action.tool_name, result=result)

    @property
    def state(self) -> State:
        return self._state
