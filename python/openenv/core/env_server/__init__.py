"""The environment server: upstream's names, imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv.core._faces import lazy_getattr

if TYPE_CHECKING:
    from openenv.core.env_server._serve import (
        Server as Server,
        serve as serve,
    )
    from openenv.core.env_server.base_transforms import (
        CompositeTransform as CompositeTransform,
        NullTransform as NullTransform,
    )
    from openenv.core.env_server.exceptions import (
        ConcurrencyConfigurationError as ConcurrencyConfigurationError,
        EnvironmentFactoryError as EnvironmentFactoryError,
        OpenEnvError as OpenEnvError,
        SessionCapacityError as SessionCapacityError,
        SessionCreationError as SessionCreationError,
        SessionNotFoundError as SessionNotFoundError,
    )
    from openenv.core.env_server.http_server import (
        HTTPEnvServer as HTTPEnvServer,
        create_app as create_app,
        create_fastapi_app as create_fastapi_app,
    )
    from openenv.core.env_server.interfaces import (
        Environment as Environment,
        Message as Message,
        ModelTokenizer as ModelTokenizer,
        Transform as Transform,
    )
    from openenv.core.env_server.mcp_environment import (
        MCPEnvironment as MCPEnvironment,
    )
    from openenv.core.env_server.mcp_types import (
        RESERVED_TOOL_NAMES as RESERVED_TOOL_NAMES,
        CallToolAction as CallToolAction,
        CallToolObservation as CallToolObservation,
        JsonRpcError as JsonRpcError,
        JsonRpcErrorCode as JsonRpcErrorCode,
        JsonRpcRequest as JsonRpcRequest,
        JsonRpcResponse as JsonRpcResponse,
        ListToolsAction as ListToolsAction,
        ListToolsObservation as ListToolsObservation,
        McpMethod as McpMethod,
        Tool as Tool,
        ToolError as ToolError,
        ToolErrorType as ToolErrorType,
        WSMCPMessage as WSMCPMessage,
        WSMCPResponse as WSMCPResponse,
    )
    from openenv.core.env_server.route_config import (
        GetEndpointConfig as GetEndpointConfig,
    )
    from openenv.core.env_server.serialization import (
        deserialize_action as deserialize_action,
        deserialize_action_with_preprocessing as deserialize_action_with_preprocessing,
        serialize_observation as serialize_observation,
    )
    from openenv.core.env_server.types import (
        Action as Action,
        BaseMessage as BaseMessage,
        ConcurrencyConfig as ConcurrencyConfig,
        HealthResponse as HealthResponse,
        HealthStatus as HealthStatus,
        Observation as Observation,
        SchemaResponse as SchemaResponse,
        ServerCapacityStatus as ServerCapacityStatus,
        ServerMode as ServerMode,
        SessionInfo as SessionInfo,
        State as State,
        WSCloseMessage as WSCloseMessage,
        WSErrorCode as WSErrorCode,
        WSErrorResponse as WSErrorResponse,
        WSIncomingMessage as WSIncomingMessage,
        WSObservationResponse as WSObservationResponse,
        WSResetMessage as WSResetMessage,
        WSStateMessage as WSStateMessage,
        WSStateResponse as WSStateResponse,
        WSStepMessage as WSStepMessage,
    )

MODULES: dict[str, tuple[str, ...]] = {
    "openenv.core.env_server._serve": (
        "Server",
        "serve",
    ),
    "openenv.core.env_server.base_transforms": (
        "CompositeTransform",
        "NullTransform",
    ),
    "openenv.core.env_server.exceptions": (
        "ConcurrencyConfigurationError",
        "EnvironmentFactoryError",
        "OpenEnvError",
        "SessionCapacityError",
        "SessionCreationError",
        "SessionNotFoundError",
    ),
    "openenv.core.env_server.http_server": (
        "HTTPEnvServer",
        "create_app",
        "create_fastapi_app",
    ),
    "openenv.core.env_server.interfaces": (
        "Environment",
        "Message",
        "ModelTokenizer",
        "Transform",
    ),
    "openenv.core.env_server.mcp_environment": ("MCPEnvironment",),
    "openenv.core.env_server.mcp_types": (
        "CallToolAction",
        "CallToolObservation",
        "JsonRpcError",
        "JsonRpcErrorCode",
        "JsonRpcRequest",
        "JsonRpcResponse",
        "ListToolsAction",
        "ListToolsObservation",
        "McpMethod",
        "RESERVED_TOOL_NAMES",
        "Tool",
        "ToolError",
        "ToolErrorType",
        "WSMCPMessage",
        "WSMCPResponse",
    ),
    "openenv.core.env_server.route_config": ("GetEndpointConfig",),
    "openenv.core.env_server.serialization": (
        "deserialize_action",
        "deserialize_action_with_preprocessing",
        "serialize_observation",
    ),
    "openenv.core.env_server.types": (
        "Action",
        "BaseMessage",
        "ConcurrencyConfig",
        "HealthResponse",
        "HealthStatus",
        "Observation",
        "SchemaResponse",
        "ServerCapacityStatus",
        "ServerMode",
        "SessionInfo",
        "State",
        "WSCloseMessage",
        "WSErrorCode",
        "WSErrorResponse",
        "WSIncomingMessage",
        "WSObservationResponse",
        "WSResetMessage",
        "WSStateMessage",
        "WSStateResponse",
        "WSStepMessage",
    ),
}

__all__ = [
    "RESERVED_TOOL_NAMES",
    "Action",
    "BaseMessage",
    "CallToolAction",
    "CallToolObservation",
    "CompositeTransform",
    "ConcurrencyConfig",
    "ConcurrencyConfigurationError",
    "Environment",
    "EnvironmentFactoryError",
    "GetEndpointConfig",
    "HTTPEnvServer",
    "HealthResponse",
    "HealthStatus",
    "JsonRpcError",
    "JsonRpcErrorCode",
    "JsonRpcRequest",
    "JsonRpcResponse",
    "ListToolsAction",
    "ListToolsObservation",
    "MCPEnvironment",
    "McpMethod",
    "Message",
    "ModelTokenizer",
    "NullTransform",
    "Observation",
    "OpenEnvError",
    "SchemaResponse",
    "Server",
    "ServerCapacityStatus",
    "ServerMode",
    "SessionCapacityError",
    "SessionCreationError",
    "SessionInfo",
    "SessionNotFoundError",
    "State",
    "Tool",
    "ToolError",
    "ToolErrorType",
    "Transform",
    "WSCloseMessage",
    "WSErrorCode",
    "WSErrorResponse",
    "WSIncomingMessage",
    "WSMCPMessage",
    "WSMCPResponse",
    "WSObservationResponse",
    "WSResetMessage",
    "WSStateMessage",
    "WSStateResponse",
    "WSStepMessage",
    "create_app",
    "create_fastapi_app",
    "deserialize_action",
    "deserialize_action_with_preprocessing",
    "serialize_observation",
    "serve",
]

if not TYPE_CHECKING:  # a checker shall find a wrong name
    __getattr__ = lazy_getattr(__name__, MODULES, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
