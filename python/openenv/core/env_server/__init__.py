"""The environment server: upstream's names, imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv.core._faces import face_names, lazy_getattr

if TYPE_CHECKING:
    from openenv.core.env_server._serve import (
        Server as Server,
    )
    from openenv.core.env_server._serve import (
        serve as serve,
    )
    from openenv.core.env_server.base_transforms import (
        CompositeTransform as CompositeTransform,
    )
    from openenv.core.env_server.base_transforms import (
        NullTransform as NullTransform,
    )
    from openenv.core.env_server.exceptions import (
        ConcurrencyConfigurationError as ConcurrencyConfigurationError,
    )
    from openenv.core.env_server.exceptions import (
        EnvironmentFactoryError as EnvironmentFactoryError,
    )
    from openenv.core.env_server.exceptions import (
        OpenEnvError as OpenEnvError,
    )
    from openenv.core.env_server.exceptions import (
        SessionCapacityError as SessionCapacityError,
    )
    from openenv.core.env_server.exceptions import (
        SessionCreationError as SessionCreationError,
    )
    from openenv.core.env_server.exceptions import (
        SessionNotFoundError as SessionNotFoundError,
    )
    from openenv.core.env_server.http_server import (
        HTTPEnvServer as HTTPEnvServer,
    )
    from openenv.core.env_server.http_server import (
        create_app as create_app,
    )
    from openenv.core.env_server.http_server import (
        create_fastapi_app as create_fastapi_app,
    )
    from openenv.core.env_server.interfaces import (
        Environment as Environment,
    )
    from openenv.core.env_server.interfaces import (
        Message as Message,
    )
    from openenv.core.env_server.interfaces import (
        ModelTokenizer as ModelTokenizer,
    )
    from openenv.core.env_server.interfaces import (
        Transform as Transform,
    )
    from openenv.core.env_server.mcp_types import (
        RESERVED_TOOL_NAMES as RESERVED_TOOL_NAMES,
    )
    from openenv.core.env_server.mcp_types import (
        CallToolAction as CallToolAction,
    )
    from openenv.core.env_server.mcp_types import (
        CallToolObservation as CallToolObservation,
    )
    from openenv.core.env_server.mcp_types import (
        JsonRpcError as JsonRpcError,
    )
    from openenv.core.env_server.mcp_types import (
        JsonRpcErrorCode as JsonRpcErrorCode,
    )
    from openenv.core.env_server.mcp_types import (
        JsonRpcRequest as JsonRpcRequest,
    )
    from openenv.core.env_server.mcp_types import (
        JsonRpcResponse as JsonRpcResponse,
    )
    from openenv.core.env_server.mcp_types import (
        ListToolsAction as ListToolsAction,
    )
    from openenv.core.env_server.mcp_types import (
        ListToolsObservation as ListToolsObservation,
    )
    from openenv.core.env_server.mcp_types import (
        McpMethod as McpMethod,
    )
    from openenv.core.env_server.mcp_types import (
        Tool as Tool,
    )
    from openenv.core.env_server.mcp_types import (
        ToolError as ToolError,
    )
    from openenv.core.env_server.mcp_types import (
        ToolErrorType as ToolErrorType,
    )
    from openenv.core.env_server.mcp_types import (
        WSMCPMessage as WSMCPMessage,
    )
    from openenv.core.env_server.mcp_types import (
        WSMCPResponse as WSMCPResponse,
    )
    from openenv.core.env_server.route_config import (
        GetEndpointConfig as GetEndpointConfig,
    )
    from openenv.core.env_server.serialization import (
        deserialize_action as deserialize_action,
    )
    from openenv.core.env_server.serialization import (
        deserialize_action_with_preprocessing as deserialize_action_with_preprocessing,
    )
    from openenv.core.env_server.serialization import (
        serialize_observation as serialize_observation,
    )
    from openenv.core.env_server.types import (
        Action as Action,
    )
    from openenv.core.env_server.types import (
        BaseMessage as BaseMessage,
    )
    from openenv.core.env_server.types import (
        ConcurrencyConfig as ConcurrencyConfig,
    )
    from openenv.core.env_server.types import (
        HealthResponse as HealthResponse,
    )
    from openenv.core.env_server.types import (
        HealthStatus as HealthStatus,
    )
    from openenv.core.env_server.types import (
        Observation as Observation,
    )
    from openenv.core.env_server.types import (
        SchemaResponse as SchemaResponse,
    )
    from openenv.core.env_server.types import (
        ServerCapacityStatus as ServerCapacityStatus,
    )
    from openenv.core.env_server.types import (
        ServerMode as ServerMode,
    )
    from openenv.core.env_server.types import (
        SessionInfo as SessionInfo,
    )
    from openenv.core.env_server.types import (
        State as State,
    )
    from openenv.core.env_server.types import (
        WSCloseMessage as WSCloseMessage,
    )
    from openenv.core.env_server.types import (
        WSErrorCode as WSErrorCode,
    )
    from openenv.core.env_server.types import (
        WSErrorResponse as WSErrorResponse,
    )
    from openenv.core.env_server.types import (
        WSIncomingMessage as WSIncomingMessage,
    )
    from openenv.core.env_server.types import (
        WSObservationResponse as WSObservationResponse,
    )
    from openenv.core.env_server.types import (
        WSResetMessage as WSResetMessage,
    )
    from openenv.core.env_server.types import (
        WSStateMessage as WSStateMessage,
    )
    from openenv.core.env_server.types import (
        WSStateResponse as WSStateResponse,
    )
    from openenv.core.env_server.types import (
        WSStepMessage as WSStepMessage,
    )

_MODULES: dict[str, tuple[str, ...]] = {
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

__all__ = face_names(_MODULES)  # noqa: PLE0605 - made from the one table

__getattr__ = lazy_getattr(__name__, _MODULES, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
