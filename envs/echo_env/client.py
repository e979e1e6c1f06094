"""The client: tools by name, or as the actions of steps."""

from __future__ import annotations

from openenv.core.mcp_client import MCPToolClient


class EchoEnv(MCPToolClient):
    """Talk to the echo environment of a running server.

    Example:
        ```python
        async with EchoEnv(base_url="http://localhost:8000") as env:
            result = await env.reset()
            print(result.observation.echoed_message)
            print(await env.call_tool("echo_message", message="Hello"))
        ```
    """
