"""Random calls of tools: the policy of environments whose actions are such calls.

The action's own schema has a text for the tool's name, and a name drawn at random
names no tool. So the environment is asked which tools it has, and a call's arguments
are drawn from its tool's input schema.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openenv.core.mcp_client import MCPToolClient
from openenv.rollout._boundary import Caught, awaited
from openenv.rollout.errors import InvalidRollout, RolloutError
from openenv.rollout.sampling import compile_sampler

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from openenv.core.env_server.mcp_types import Tool

    Draw = Callable[[random.Random], dict[str, Any]]


def calls_tools(schema: Mapping[str, Any]) -> bool:
    """Tell whether the actions of a JSON schema are those of MCP environments."""
    properties = schema.get("properties")
    kind = properties.get("type") if isinstance(properties, dict) else None
    return isinstance(kind, dict) and kind.get("const") == "call_tool"


def compile_calls(tools: Iterable[Tool]) -> Draw:
    """Make a function that draws a call of one of these tools, as an action's fields.

    A tool whose arguments cannot be drawn is never called.

    Raises:
        InvalidRollout: no tool's arguments can be drawn.
    """
    named = list(tools)
    samplers: list[tuple[str, Callable[[random.Random], Any]]] = []
    for tool in named:
        with suppress(InvalidRollout):
            samplers.append((tool.name, compile_sampler(tool.input_schema)))
    if not samplers:
        names = ", ".join(tool.name for tool in named)
        found = f"calls of none of the tools {names} can be drawn" if named else ""
        message = f"{found or 'the environment has no tools'}; give --policy"
        raise InvalidRollout(message)

    def draw(rng: random.Random) -> dict[str, Any]:
        name, sample = rng.choice(samplers)
        return {"type": "call_tool", "tool_name": name, "arguments": sample(rng)}

    return draw


async def fetch_tools(
    base_url: str,
    connect_timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> list[Tool]:
    """Ask a server for its tools, in a session that is closed again.

    Args:
        base_url: the server's URL as clients take it.
        connect_timeout_s: seconds until the session must be open.
        headers: sent with the handshake.

    Raises:
        RolloutError: the server does not tell them.
    """
    client = MCPToolClient(
        base_url, connect_timeout_s=connect_timeout_s, headers=headers
    )
    tools = await awaited(client.list_tools())
    await awaited(client.close())
    if isinstance(tools, Caught):
        message = f"cannot list the environment's tools: {tools.error}; give --policy"
        raise RolloutError(message) from tools.error
    return tools
