r"""Environments whose actions are calls of MCP tools; needs the extra ``mcp``.

A FastMCP server lives inside the environment and is called in process: no transport,
no handshake, no JSON between the action and the tool.  A tool that takes a FastMCP
``Context``, or whose server has a lifespan, expects an MCP session around it; only such
a tool is called through a client, which is opened once and stays open as long as the
environment.

    CallToolAction --> step_async --> call in process ----------> tool
                                  \-> client of this session --> tool with a Context
"""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import asyncio
import inspect
from abc import abstractmethod
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

try:
    import fastmcp
except ModuleNotFoundError as _error:
    if _error.name != "fastmcp":
        raise
    _MISSING = (
        "MCPEnvironment needs 'fastmcp', which is not installed; "
        "install the extra: pip install 'openenv[mcp]'"
    )
    raise ModuleNotFoundError(_MISSING, name=_error.name) from _error

from fastmcp.client.client import CallToolResult
from fastmcp.exceptions import ToolError as FastMCPToolError
from fastmcp.server.server import default_lifespan
from fastmcp.utilities.types import find_kwarg_by_type
from mcp.types import TextContent

from openenv.core.env_server.interfaces import Environment, Transform
from openenv.core.env_server.mcp_types import (
    RESERVED_TOOL_NAMES,
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
    ToolError,
    ToolErrorType,
)
from openenv.core.env_server.types import Action, Observation
from openenv.core.utils import run_async_safely

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable

    Function = Callable[..., Any]

MCP_TOOL_CALL_TIMEOUT = 30.0  # seconds; upstream's
VALID_MODES = {"production", "simulation"}

# What upstream's server tells of a tool: the members of MCP's own model, which newer
# SDKs spell otherwise in Python.
_WIRE_MEMBERS: Final = (
    ("name", "name"),
    ("title", "title"),
    ("description", "description"),
    ("inputSchema", "input_schema"),
    ("outputSchema", "output_schema"),
    ("icons", "icons"),
    ("annotations", "annotations"),
    ("meta", "meta"),
    ("execution", "execution"),
)
_JSON_TYPES: Final = {"int": "integer", "float": "number", "bool": "boolean"}

# Upstream tells the kinds of failure by their text, and so do its peers' tests.
_FAILURE_WORDS: Final = (
    (("not found", "unknown tool"), ToolErrorType.TOOL_NOT_FOUND),
    (("invalid", "argument"), ToolErrorType.INVALID_ARGS),
)

# FastMCP 4 has sessions only with clients that ask for the handshake of before.
_CLIENT_OPTIONS: Final[dict[str, Any]] = (
    {"mode": "legacy"}
    if "mode" in inspect.signature(fastmcp.Client.__init__).parameters
    else {}
)

_background: set[asyncio.Task[None]] = set()  # a loop holds its tasks only weakly


def get_server_tools(mcp_server: Any) -> dict[str, Any]:
    """Return the FastMCP tools of a server by name; callable anywhere, blocks."""
    return {tool.name: tool for tool in run_async_safely(mcp_server.list_tools())}


class MCPEnvironment(Environment[Any, Any, Any]):
    """An environment that offers the tools of a FastMCP server.

    `ListToolsAction` and `CallToolAction` are served from the tools, every other
    action goes to ``_step_impl``.  Tools run as FastMCP runs them: ``async def`` on
    the loop of environments, others on a thread.

    Args:
        mcp_server: a ``fastmcp.FastMCP`` with its tools.
        transform: what `_apply_transform` applies.

    Raises:
        ValueError: a tool is named ``reset``, ``step``, ``state`` or ``close``.

    Example:
        >>> from fastmcp import FastMCP
        >>> class Calculator(MCPEnvironment):
        ...     def __init__(self):
        ...         server = FastMCP("calculator")
        ...
        ...         @server.tool
        ...         def add(a: int, b: int) -> int:
        ...             return a + b
        ...
        ...         super().__init__(server)
        ...
        ...     def reset(self, seed=None, episode_id=None, **kwargs):
        ...         return Observation()
        ...
        ...     def _step_impl(self, action, timeout_s=None, **kwargs):
        ...         raise ValueError("this environment knows tools only")
        ...
        ...     @property
        ...     def state(self):
        ...         return {}
        >>> action = CallToolAction(tool_name="add", arguments={"a": 1, "b": 2})
        >>> Calculator().step(action).result.data
        3
    """

    def __init__(
        self, mcp_server: Any, transform: Transform[Any] | None = None
    ) -> None:
        super().__init__(transform=transform)
        _refuse_reserved(get_server_tools(mcp_server))
        self.mcp_server: Any = mcp_server
        self.mcp_client: Any = fastmcp.Client(mcp_server, **_CLIENT_OPTIONS)
        self._mode_tools: dict[str, dict[str | None, Function]] = defaultdict(dict)
        self._mode_tool_schemas: dict[str, dict[str | None, Tool]] = defaultdict(dict)

    # -- the environment -----------------------------------------------------------

    @abstractmethod
    def _step_impl(
        self, action: Action, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        """Do an action that is not about tools; arguments as `step`."""

    @override
    def step(
        self, action: Any, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        """Do an action; a server calls `step_async` instead."""
        if isinstance(action, ListToolsAction | CallToolAction):
            return run_async_safely(self._tools_step_alone(action, timeout_s))
        return self._step_impl(action, timeout_s=timeout_s, **kwargs)

    @override
    async def step_async(
        self, action: Any, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        """Do an action.

        Args:
            action: which tool to call, a request to list them, or anything that
                ``_step_impl`` takes; that one runs on a thread.
            timeout_s: seconds for a tool, `MCP_TOOL_CALL_TIMEOUT` by default.
            **kwargs: what ``_step_impl`` takes besides.

        Returns:
            The tools, or what a tool gave; failures are told in the observation.
        """
        if isinstance(action, ListToolsAction | CallToolAction):
            return await self._tools_step(action, timeout_s)
        return await asyncio.to_thread(
            self._step_impl, action, timeout_s=timeout_s, **kwargs
        )

    @override
    def close(self) -> None:
        """Let go of the tools; call ``super().close()`` where you override it."""
        client, self.mcp_client, self.mcp_server = self.mcp_client, None, None
        if client is not None and client.is_connected():
            task = asyncio.get_running_loop().create_task(client.close())
            _background.add(task)
            task.add_done_callback(_background.discard)

    # -- tools -----------------------------------------------------------------------

    def tool(self, mode: str | None = None) -> Callable[[Function], Function]:
        """Make a decorator that adds a method of the environment as a tool.

        Args:
            mode: offer it only while ``self._mode`` is this one, "production" or
                "simulation"; None always.

        Raises:
            ValueError: there is no such mode, or the function's name is reserved.
        """
        if mode is not None and mode not in VALID_MODES:
            msg = (
                f"Invalid mode '{mode}'. "
                "Mode must be 'production', 'simulation', or None."
            )
            raise ValueError(msg)

        def decorator(function: Function) -> Function:
            name = function.__name__
            _refuse_reserved([name])
            self._mode_tools[name][mode] = function
            if mode is None:
                decorated: Function = self._server().tool()(function)
                return decorated
            self._mode_tool_schemas[name][mode] = _described(function)
            return function

        return decorator

    @asynccontextmanager
    async def mcp_session(self) -> AsyncIterator[Any]:
        """Hold an MCP session with the server and give its ``fastmcp.Client``.

        Raises:
            RuntimeError: the environment is closed.
        """
        if self.mcp_client is None:
            msg = "MCP client is not available; environment is closed"
            raise RuntimeError(msg)
        async with self.mcp_client as client:
            yield client

    async def mcp_list_tools(self) -> list[dict[str, Any]]:
        """Return the server's tools as JSON-RPC tells them (``tools/list``)."""
        return [_wire_form(tool) for tool in await self._server().list_tools()]

    async def mcp_call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool of the server (``tools/call``).

        Returns:
            A ``CallToolResult``; its ``data`` is what the tool returned.

        Raises:
            Exception: whatever FastMCP says of an unknown tool, of wrong arguments or
                of a tool that raised.
        """
        server = self._server()
        if not await _needs_session(server, name):
            return _call_result(await server.call_tool(name, arguments))
        client = self.mcp_client
        if not client.is_connected():
            await client.__aenter__()  # it stays open: the session keeps its state
        return await client.call_tool(name, arguments)

    # -- code that calls tools -----------------------------------------------------

    @property
    def supports_code_mode(self) -> bool:
        """Whether `execute_code` works."""
        return True

    def get_callables(self) -> dict[str, Function]:
        """Return the functions of the tools that the mode offers, by name."""
        functions = {
            name: tool.fn
            for name, tool in get_server_tools(self._server()).items()
            if callable(getattr(tool, "fn", None))
        }
        for name in self._mode_tools:
            function = self._mode_function(name)
            if function is not None:
                functions[name] = function
        return functions

    def execute_code(self, code: str) -> Observation:
        """Run Python code that calls the tools as functions.

        The code runs in this process with all its rights: it is for agents that are
        trusted as much as the environment.

        Args:
            code: statements; what they assign to ``result`` is told.

        Returns:
            An observation with ``result`` or ``error`` in its metadata.
        """
        names: dict[str, Any] = {}
        try:
            exec(code, self.get_callables(), names)  # noqa: S102 - what it is for
        except SyntaxError as error:
            return _coded({"error": f"Syntax error: {error}"})
        except Exception as error:  # noqa: BLE001 - the code is the agent's
            return _coded({"error": str(error)})
        return _coded({"result": names.get("result")})

    # -- helpers -------------------------------------------------------------------

    def _server(self) -> Any:
        if self.mcp_server is None:
            msg = "MCP client is not available; environment is closed"
            raise RuntimeError(msg)
        return self.mcp_server

    async def _tools_step_alone(
        self, action: ListToolsAction | CallToolAction, timeout_s: float | None
    ) -> Observation:
        """Do one action on a loop that ends with it; a session must not outlive it."""
        client = self.mcp_client
        try:
            return await self._tools_step(action, timeout_s)
        finally:
            if client is not None and client.is_connected():
                await client.close()

    async def _tools_step(
        self, action: ListToolsAction | CallToolAction, timeout_s: float | None
    ) -> Observation:
        if isinstance(action, ListToolsAction):
            return await self._listed()
        return await self._called(action, timeout_s)

    async def _listed(self) -> ListToolsObservation:
        try:
            offered = [
                Tool(
                    name=tool.name,
                    description=tool.description or "",
                    input_schema=tool.parameters,
                )
                for tool in await self._server().list_tools()
                if tool.name not in self._mode_tool_schemas
            ]
        except Exception as error:  # noqa: BLE001 - FastMCP's and its extensions'
            told = {"error": str(error), "error_type": "list_tools_failed"}
            return ListToolsObservation(tools=[], metadata=told)
        mode = getattr(self, "_mode", None)
        by_mode = self._mode_tool_schemas.values()
        offered += [schemas[mode] for schemas in by_mode if mode in schemas]
        return ListToolsObservation(tools=offered)

    async def _called(
        self, action: CallToolAction, timeout_s: float | None
    ) -> CallToolObservation:
        name = action.tool_name
        limit_s = MCP_TOOL_CALL_TIMEOUT if timeout_s is None else timeout_s
        if name not in self._mode_tools:
            call = self.mcp_call_tool(name, action.arguments)
        elif (function := self._mode_function(name)) is not None:
            call = _call_function(function, action.arguments)
        else:
            mode = getattr(self, "_mode", None)
            text = f"Tool '{name}' not available in {mode} mode"
            return _failed(name, ToolErrorType.TOOL_NOT_FOUND, text)
        try:
            result = await _within(limit_s, call)
        except TimeoutError:
            text = f"Tool '{name}' timed out after {limit_s} seconds"
            return _failed(name, ToolErrorType.TIMEOUT, text)
        except Exception as error:  # noqa: BLE001 - the author's tool
            return _failed(name, _kind(str(error)), str(error))
        return CallToolObservation(tool_name=name, result=result)

    def _mode_function(self, name: str) -> Function | None:
        functions = self._mode_tools[name]
        mode = getattr(self, "_mode", None)
        return functions.get(None, functions.get(mode))


async def _within(limit_s: float, call: Coroutine[Any, Any, Any]) -> Any:
    """Await a call for a time.  What runs on a thread then runs on unheard."""
    task = asyncio.get_running_loop().create_task(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.cancel()
    _background.add(task)
    task.add_done_callback(_background.discard)
    raise TimeoutError


async def _call_function(function: Function, arguments: dict[str, Any]) -> Any:
    """Call a tool that FastMCP does not know, with FastMCP's form of a result."""
    if inspect.iscoroutinefunction(function):
        value = await function(**arguments)
    else:
        value = await asyncio.to_thread(function, **arguments)
    return CallToolResult(
        content=[TextContent(type="text", text=str(value))],
        structured_content={"result": value},
        meta=None,
        data=value,
        is_error=False,
    )


async def _needs_session(server: Any, name: str) -> bool:
    if server._lifespan is not default_lifespan:  # noqa: SLF001 - told nowhere else
        return True
    function = getattr(await server.get_tool(name), "fn", None)
    return bool(function and find_kwarg_by_type(function, fastmcp.Context))


def _call_result(result: Any) -> CallToolResult:
    """Give a result the form that it has behind a client.

    Raises:
        FastMCPToolError: the tool told a failure.
    """
    if getattr(result, "is_error", False):
        raise FastMCPToolError("".join(getattr(c, "text", "") for c in result.content))
    structured = data = result.structured_content
    if ((result.meta or {}).get("fastmcp") or {}).get("wrap_result"):
        data = structured["result"]
    return CallToolResult(
        content=result.content,
        structured_content=structured,
        meta=result.meta,
        data=data,
        is_error=False,
    )


def _wire_form(tool: Any) -> dict[str, Any]:
    # FastMCP 4 makes a title of the name where the author gave none.
    members = tool.to_mcp_tool().model_dump() | {"title": tool.title}
    return {wire: members.get(wire, members.get(name)) for wire, name in _WIRE_MEMBERS}


def _described(function: Function) -> Tool:
    """Describe a tool by its signature; upstream knows these types only."""
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = getattr(parameter.annotation, "__name__", parameter.annotation)
        properties[name] = {"type": _JSON_TYPES.get(kind, "string")}
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required}
    return Tool(
        name=function.__name__,
        description=function.__doc__ or "",
        input_schema=schema,
    )


def _refuse_reserved(names: Iterable[str]) -> None:
    conflicts = sorted(RESERVED_TOOL_NAMES.intersection(names))
    if conflicts:
        msg = (
            f"MCP tools cannot use reserved names: {conflicts}. "
            f"Reserved names are: {sorted(RESERVED_TOOL_NAMES)}"
        )
        raise ValueError(msg)


def _kind(text: str) -> ToolErrorType:
    lowered = text.lower()
    for words, kind in _FAILURE_WORDS:
        if any(word in lowered for word in words):
            return kind
    return ToolErrorType.EXECUTION_ERROR


def _failed(name: str, kind: ToolErrorType, text: str) -> CallToolObservation:
    error = ToolError(error_type=kind, message=text)
    return CallToolObservation(tool_name=name, error=error)


def _coded(metadata: dict[str, Any]) -> Observation:
    return Observation(done=False, reward=0.0, metadata=metadata)
