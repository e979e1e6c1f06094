"""Models of tool calls and JSON-RPC (upstream's names); no MCP package needed."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import override

from openenv.core.env_server.types import Action, Observation

RESERVED_TOOL_NAMES = frozenset({"reset", "step", "state", "close"})


class JsonRpcErrorCode(int, Enum):
    """Error codes of JSON-RPC 2.0."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_ERROR = -32000


_DEFAULT_MESSAGES = {
    JsonRpcErrorCode.PARSE_ERROR: "Parse error",
    JsonRpcErrorCode.INVALID_REQUEST: "Invalid Request",
    JsonRpcErrorCode.METHOD_NOT_FOUND: "Method not found",
    JsonRpcErrorCode.INVALID_PARAMS: "Invalid params",
    JsonRpcErrorCode.INTERNAL_ERROR: "Internal error",
    JsonRpcErrorCode.SERVER_ERROR: "Server error",
}


class McpMethod(StrEnum):
    """Methods upstream's server knows."""

    TOOLS_LIST = "tools/list"
    TOOLS_CALL = "tools/call"


class JsonRpcError(BaseModel):
    """The ``error`` member of a response."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    code: int
    message: str
    data: Any | None = None

    @classmethod
    def from_code(
        cls, code: JsonRpcErrorCode, message: str | None = None, data: Any = None
    ) -> JsonRpcError:
        """Build an error; the message defaults to the code's."""
        text = message or _DEFAULT_MESSAGES[code]
        return cls(code=code.value, message=text, data=data)


class JsonRpcRequest(BaseModel):
    """A request."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] = Field(default_factory=dict)
    id: str | int | None = None


class JsonRpcResponse(BaseModel):
    """A response: a result or an error, never both."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"] = "2.0"
    result: Any | None = None
    error: JsonRpcError | None = None
    id: str | int | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.error is not None and self.result is not None:
            msg = "a response has a result or an error, not both"
            raise ValueError(msg)
        return self

    @override
    def model_dump(self, **kwargs: Any) -> dict[str, Any]:
        """Return the wire form: ``result`` (also null) or ``error``."""
        del kwargs
        data: dict[str, Any] = {"jsonrpc": self.jsonrpc, "id": self.id}
        if self.error is None:
            data["result"] = self.result
        else:
            data["error"] = self.error.model_dump()
        return data

    @override
    def model_dump_json(self, **kwargs: Any) -> str:
        """Return the wire form as JSON text."""
        from openenv.core._native import native  # noqa: PLC0415 - keeps clients light

        return native.json_encode(self.model_dump(**kwargs)).decode()

    @classmethod
    def success(
        cls, result: Any, request_id: str | int | None = None
    ) -> JsonRpcResponse:
        """Build a response with a result."""
        return cls(result=result, id=request_id)

    @classmethod
    def error_response(
        cls,
        code: JsonRpcErrorCode,
        message: str | None = None,
        data: Any = None,
        request_id: str | int | None = None,
    ) -> JsonRpcResponse:
        """Build a response with an error."""
        return cls(error=JsonRpcError.from_code(code, message, data), id=request_id)


class Tool(BaseModel):
    """A tool an environment offers."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: str
    description: str
    input_schema: dict[str, Any]


class ToolErrorType(StrEnum):
    """Why a tool call failed."""

    EXECUTION_ERROR = "execution_error"
    INVALID_ARGS = "invalid_args"
    TRANSPORT_ERROR = "transport_error"
    TOOL_NOT_FOUND = "tool_not_found"
    TIMEOUT = "timeout"


class ToolError(BaseModel):
    """A failure around a tool, not one the tool itself reports."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    error_type: ToolErrorType
    message: str


class ListToolsAction(Action):
    """Ask for the tools."""

    type: Literal["list_tools"] = "list_tools"


class CallToolAction(Action):
    """Call a tool."""

    type: Literal["call_tool"] = "call_tool"
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class ListToolsObservation(Observation):
    """The tools."""

    tools: list[Tool]


class CallToolObservation(Observation):
    """What a tool returned, or why it could not be called."""

    tool_name: str
    result: Any = None
    error: ToolError | None = None


class WSMCPMessage(BaseModel):
    """A JSON-RPC request inside a ``/ws`` message."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    type: Literal["mcp"] = "mcp"
    data: dict[str, Any]


class WSMCPResponse(BaseModel):
    """A JSON-RPC response inside a ``/ws`` message."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    type: str = "mcp"
    data: dict[str, Any]
