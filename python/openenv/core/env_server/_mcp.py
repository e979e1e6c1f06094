"""JSON-RPC of environments without tools: the answers to ``mcp`` on ``/ws``."""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from openenv.core.env_server.mcp_types import (
    JsonRpcErrorCode,
    JsonRpcRequest,
    JsonRpcResponse,
    McpMethod,
)

_NO_TOOLS = "Environment does not support MCP"


def answer_jsonrpc(data: Any) -> dict[str, Any]:
    """Answer one JSON-RPC request; every answer is an error (upstream's texts)."""
    try:
        request = JsonRpcRequest.model_validate(data)
    except ValidationError as error:
        text = f"Invalid request: {error}"
        return _error(JsonRpcErrorCode.INVALID_REQUEST, text, None)
    if request.method == McpMethod.TOOLS_CALL and "name" not in request.params:
        text = "Missing 'name' in params"
        return _error(JsonRpcErrorCode.INVALID_PARAMS, text, request.id)
    if request.method in (McpMethod.TOOLS_CALL, McpMethod.TOOLS_LIST):
        return _error(JsonRpcErrorCode.INTERNAL_ERROR, _NO_TOOLS, request.id)
    text = f"Method not found: {request.method}"
    return _error(JsonRpcErrorCode.METHOD_NOT_FOUND, text, request.id)


def _error(
    code: JsonRpcErrorCode, text: str, request_id: str | int | None
) -> dict[str, Any]:
    response = JsonRpcResponse.error_response(code, text, request_id=request_id)
    return response.model_dump()
