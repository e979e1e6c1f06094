"""JSON-RPC about an environment's tools, in upstream's words.

One request goes one way, whether it came by ``POST /mcp``, on a WebSocket ``/mcp`` or
as an ``mcp`` message on ``/ws``::

    data --> JsonRpcRequest --> plan --> called where the environment runs --> response

Runs where the environment runs.  What cannot be answered is a JSON-RPC error, never an
exception.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from openenv.core._native import native
from openenv.core.env_server import _boundary
from openenv.core.env_server._dispatch import Plan, call_planned, step_plan
from openenv.core.env_server._wire_errors import error_data
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    JsonRpcErrorCode,
    JsonRpcRequest,
    JsonRpcResponse,
    ListToolsAction,
    ListToolsObservation,
    McpMethod,
)
from openenv.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from openenv.core.env_server._hosted import Hosted
    from openenv.core.env_server.types import Observation

SESSION_CREATE: Final = "openenv/session/create"
SESSION_CLOSE: Final = "openenv/session/close"

# What `step` gives for each method, and which of its members are told (None: all).
_OBSERVATIONS: Final[dict[str, tuple[type[Observation], set[str] | None]]] = {
    McpMethod.TOOLS_LIST: (ListToolsObservation, {"tools"}),
    McpMethod.TOOLS_CALL: (CallToolObservation, None),
}


class Refusal(Exception):  # noqa: N818 - STYLE 8: named by what happened
    """A request that is answered with an error.

    Args:
        code: JSON-RPC's.
        text: the message; the code's own by default.
        request: what is answered, None where it has no readable id.
        data: more for the peer.
    """

    def __init__(
        self,
        code: JsonRpcErrorCode,
        text: str | None = None,
        request: JsonRpcRequest | None = None,
        data: Any = None,
    ) -> None:
        super().__init__(code, text)
        request_id = None if request is None else request.id
        self.response = JsonRpcResponse.error_response(
            code, text, data, request_id
        ).model_dump()


class _Planned(NamedTuple):
    request: JsonRpcRequest
    plan: Plan


class ToolsRpc:
    """Answers requests about the tools of hosted environments.

    Args:
        by_step: whether environments without a FastMCP server take the tool actions
            in their ``step``: those whose action class is one of them (upstream).
    """

    def __init__(self, *, by_step: bool) -> None:
        self._by_step = by_step

    def answer(self, hosted: Hosted, data: Any) -> dict[str, Any]:
        """Answer for a synchronous environment, on its thread."""
        try:
            planned = self._planned(hosted, data)
        except Refusal as refusal:
            return refusal.response
        try:
            result = _boundary.call(planned.plan.call)
        except EnvironmentFault as fault:
            return _internal_error(planned.request, str(fault))
        return _answered(planned, result)

    async def answer_async(self, hosted: Hosted, data: Any) -> dict[str, Any]:
        """Answer for an asynchronous environment, on its loop."""
        try:
            planned = self._planned(hosted, data)
        except Refusal as refusal:
            return refusal.response
        try:
            result = await call_planned(hosted, planned.plan)
        except EnvironmentFault as fault:
            return _internal_error(planned.request, str(fault))
        return _answered(planned, result)

    @staticmethod
    def encoded(answer: dict[str, Any], encode: Callable[[Any], bytes]) -> bytes:
        """Encode an answer; where that fails, an error that tells why."""
        try:
            return _boundary.call(encode, answer)
        except EnvironmentFault as fault:
            code, request_id = JsonRpcErrorCode.INTERNAL_ERROR, answer["id"]
            text = str(fault)
            error = JsonRpcResponse.error_response(code, text, request_id=request_id)
            return encode(error.model_dump())

    def _planned(self, hosted: Hosted, data: Any) -> _Planned:
        request = parse(data)
        if request.method in (SESSION_CREATE, SESSION_CLOSE):
            return _Planned(request, _session_plan(hosted, request))
        check_method(request)
        params = request.params
        tools = hosted.environment
        if getattr(tools, "mcp_server", None) is not None:
            call = tools.mcp_list_tools
            if request.method == McpMethod.TOOLS_CALL:
                arguments = params.get("arguments", {})
                call = partial(tools.mcp_call_tool, params["name"], arguments)
            return _Planned(request, Plan("tools", call, awaited=True, ignored=[]))
        if not self._by_step:
            text = "Environment does not support MCP"
            raise Refusal(JsonRpcErrorCode.INTERNAL_ERROR, text, request)
        try:
            return _Planned(request, step_plan(hosted, _action(request), {}))
        except (EnvironmentFault, ValidationError) as error:
            text = str(error)
            raise Refusal(JsonRpcErrorCode.INTERNAL_ERROR, text, request) from error


def parse(data: Any) -> JsonRpcRequest:
    """Read a request from decoded JSON.

    Raises:
        Refusal: it is none.
    """
    try:
        return JsonRpcRequest.model_validate(data)
    except ValidationError as error:
        text = f"Invalid request: {error}"
        raise Refusal(JsonRpcErrorCode.INVALID_REQUEST, text) from error


def check_method(request: JsonRpcRequest) -> None:
    """Refuse what no environment can be asked.

    Raises:
        Refusal: the method does not exist, or the tool's name is missing.
    """
    if request.method not in tuple(McpMethod):
        text = f"Method not found: {request.method}"
        raise Refusal(JsonRpcErrorCode.METHOD_NOT_FOUND, text, request)
    if request.method == McpMethod.TOOLS_CALL and not request.params.get("name"):
        text = "Missing 'name' in params"
        raise Refusal(JsonRpcErrorCode.INVALID_PARAMS, text, request)


def session_to_close(request: JsonRpcRequest) -> str:
    """Return the id of the session that a request wants closed.

    Raises:
        Refusal: there is none in it.
    """
    session_id = request.params.get("session_id")
    if not session_id:
        text = "Invalid params - 'session_id' is required"
        raise Refusal(JsonRpcErrorCode.INVALID_PARAMS, text, request)
    return str(session_id)


def unknown_session(request: JsonRpcRequest, session_id: str) -> Refusal:
    """Return the refusal of an id that no session has."""
    text = f"Unknown session_id: {session_id}"
    return Refusal(JsonRpcErrorCode.INVALID_PARAMS, text, request)


def no_session(error: Exception, request: JsonRpcRequest | None = None) -> Refusal:
    """Return the refusal of a session that could not be opened, or has ended."""
    more = error_data(error)
    text = more.pop("message")
    del more["code"]
    return Refusal(JsonRpcErrorCode.SERVER_ERROR, text, request, more or None)


def json_text(answer: dict[str, Any]) -> bytes:
    """Encode an answer that travels by itself."""
    return ToolsRpc.encoded(answer, native.json_encode)


def success(request: JsonRpcRequest, result: Any) -> dict[str, Any]:
    """Return the response with a result."""
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def _session_plan(hosted: Hosted, request: JsonRpcRequest) -> Plan:
    """Answer for the session of the connection that asks; it knows no others.

    Raises:
        Refusal: it wants to close one.
    """
    if request.method == SESSION_CREATE:
        told = {"session_id": hosted.session_id}
        return Plan("tools", lambda: told, awaited=False, ignored=[])
    session_id = session_to_close(request)
    if session_id != hosted.session_id:
        raise unknown_session(request, session_id)
    text = "Cannot close active WebSocket-managed session via MCP method"
    raise Refusal(JsonRpcErrorCode.INVALID_REQUEST, text, request)


def _action(request: JsonRpcRequest) -> ListToolsAction | CallToolAction:
    if request.method == McpMethod.TOOLS_LIST:
        return ListToolsAction()
    arguments = request.params.get("arguments", {})
    return CallToolAction(tool_name=request.params["name"], arguments=arguments)


def _answered(planned: _Planned, result: Any) -> dict[str, Any]:
    request, plan = planned
    if plan.op != "step":
        told = {"tools": result} if request.method == McpMethod.TOOLS_LIST else result
        return success(request, told)
    expected, members = _OBSERVATIONS[request.method]
    if isinstance(result, expected):
        return success(request, result.model_dump(include=members))
    text = (
        f"MCP-style {request.method} step returned {type(result).__name__}, "
        f"expected {expected.__name__}"
    )
    return _internal_error(request, text)


def _internal_error(request: JsonRpcRequest, text: str) -> dict[str, Any]:
    return Refusal(JsonRpcErrorCode.INTERNAL_ERROR, text, request).response
