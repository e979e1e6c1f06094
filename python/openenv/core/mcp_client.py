"""Clients of environments that offer tools (upstream: core/mcp_client.py).

Tools are asked for on the client's one WebSocket, as JSON-RPC in ``mcp`` messages: they
meet the environment that ``reset`` and ``step`` act on, and no second session is held.
"""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from openenv.core._client.link import Call
from openenv.core._client.raw import objects
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient, is_raw
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
)
from openenv.core.env_server.types import Observation, State

if TYPE_CHECKING:
    from openenv.core._client.settings import Headers
    from openenv.core._client.tls import Cert, Verify

__all__ = ["GenericMCPObservation", "MCPClientBase", "MCPToolClient"]

_LIFTED = ("done", "reward", "metadata")


class GenericMCPObservation(Observation):
    """An observation that is not about tools; its fields are attributes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", validate_assignment=True, arbitrary_types_allowed=True
    )


class MCPClientBase(EnvClient[Any, Observation, State]):
    """Drive an environment with tools; `MCPToolClient` calls them."""

    # Of the class, because some tests make clients without __init__.
    _tools_cache: list[Tool] | None = None
    _rpc_id = 0

    def __init__(  # noqa: PLR0913, PLR0917 - upstream's signature, order included
        self,
        base_url: str | None = None,
        connect_timeout_s: float | None = 10.0,
        message_timeout_s: float | None = 60.0,
        websocket_ping_interval_s: float | None = 20.0,
        websocket_ping_timeout_s: float | None = 20.0,
        provider: Any | None = None,
        mode: str | None = None,
        max_message_size_mb: float = 100.0,
        headers: Headers | None = None,
        *,
        proxy: str | bool | None = True,
        verify: Verify = True,
        cert: Cert | None = None,
        io: Literal["loop", "thread"] = "loop",
    ) -> None:
        """Take note of where the server is; nothing is opened yet.

        Args:
            base_url: as `EnvClient`, and so are the others.
            connect_timeout_s: as above.
            message_timeout_s: as above; it bounds a tool's call, too.
            websocket_ping_interval_s: as above.
            websocket_ping_timeout_s: as above.
            provider: as above.
            mode: ``production`` or None, which means the same.
            max_message_size_mb: as above.
            headers: as above.
            proxy: as above.
            verify: as above.
            cert: as above.
            io: as above.

        Raises:
            ValueError: another mode, or as `EnvClient`.
        """
        if mode is not None and mode.lower() != "production":
            msg = (
                f"MCPToolClient only supports 'production' mode, got '{mode}'. "
                "Use GenericEnvClient for simulation mode."
            )
            raise ValueError(msg)
        super().__init__(
            base_url,
            connect_timeout_s,
            message_timeout_s,
            max_message_size_mb,
            websocket_ping_interval_s,
            websocket_ping_timeout_s,
            provider,
            "production",
            headers,
            proxy=proxy,
            verify=verify,
            cert=cert,
            io=io,
        )

    async def list_tools(self, use_cache: bool = True) -> list[Tool]:  # noqa: FBT001, FBT002, RUF100 - upstream's
        """Ask which tools there are.

        Args:
            use_cache: whether the answer of before will do.

        Raises:
            RuntimeError: the environment has no tools, or failed to list them.
            OpenEnvError: as `step`.
        """
        if self._tools_cache is None or not use_cache:
            result = await self._rpc("list_tools", "tools/list", {})
            self._tools_cache = [_tool(members) for members in result["tools"]]
        return self._tools_cache

    async def _rpc(self, what: str, method: str, params: dict[str, Any]) -> Any:
        """Make one JSON-RPC request.

        Raises:
            RuntimeError: the answer is an error.
        """
        self._rpc_id += 1
        request = {
            "jsonrpc": "2.0",
            "method": method,
            "params": params,
            "id": self._rpc_id,
        }
        answer = await self._ask_mcp(request)
        if "error" in answer:
            msg = f"{what} failed: {answer['error'].get('message', 'unknown error')}"
            raise RuntimeError(msg)
        return answer.get("result")

    async def _ask_mcp(self, request: dict[str, Any]) -> Any:
        if is_raw(self):
            return await self._ask_raw("mcp", request)
        return await self._home.perform(Call("mcp", request, objects()))

    @override
    def _step_payload(self, action: Any) -> dict[str, Any]:
        if isinstance(action, ListToolsAction):
            return {"type": "list_tools"}
        if isinstance(action, CallToolAction):
            return action.model_dump(include={"type", "tool_name", "arguments"})
        if isinstance(action, BaseModel):
            return action.model_dump()
        return {"action": str(action)}

    @override
    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Observation]:
        members = payload.get("observation", {})
        lifted: dict[str, Any] = {
            "done": payload.get("done", False),
            "reward": payload.get("reward"),
            "metadata": payload.get("metadata", members.get("metadata", {})),
        }
        own = {k: v for k, v in members.items() if k not in _LIFTED}
        observation: Observation
        if "tools" in own:
            tools = [_tool(tool) for tool in own["tools"]]
            observation = ListToolsObservation(tools=tools, **lifted)
        elif "tool_name" in own:
            known = {k: own.get(k) for k in ("tool_name", "result", "error")}
            observation = CallToolObservation.model_validate(known | lifted)
        else:
            observation = GenericMCPObservation(**own, **lifted)
        metadata = payload.get("metadata")
        return StepResult(observation, lifted["reward"], lifted["done"], metadata)

    @override
    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State.model_validate(payload)


class MCPToolClient(MCPClientBase):
    """Call an environment's tools by name, or as actions of `step`.

    A tool that is called by name is no step: it gives no reward and is not counted.

    Example:
        >>> async def calculate() -> None:
        ...     async with MCPToolClient("http://localhost:8000") as env:
        ...         print([tool.name for tool in await env.list_tools()])
        ...         print(await env.call_tool("add", a=1, b=2))
    """

    async def call_tool(self, name: str, /, **kwargs: Any) -> Any:
        """Call a tool and return what it returned.

        Args:
            name: The tool.
            **kwargs: Its arguments.

        Raises:
            RuntimeError: There is no such tool, the arguments do not fit, or it raised.
            OpenEnvError: As `step`.
        """
        params = {"name": name, "arguments": kwargs}
        result = await self._rpc(f"Tool '{name}'", "tools/call", params)
        if isinstance(result, dict) and "data" in result:
            return result["data"]
        return result

    async def get_tool(self, name: str) -> Tool | None:
        """Return the tool of that name, None if there is none; errors as above."""
        tools = await self.list_tools()
        return next((tool for tool in tools if tool.name == name), None)

    async def has_tool(self, name: str) -> bool:
        """Tell whether there is a tool of that name; errors as above."""
        return await self.get_tool(name) is not None


def _tool(members: dict[str, Any]) -> Tool:
    schema = members.get("input_schema", members.get("inputSchema", {}))
    description = members.get("description") or ""
    return Tool(name=members["name"], description=description, input_schema=schema)
