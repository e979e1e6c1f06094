"""``GET /state``, ``/metadata``, ``/health`` and ``/schema``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request  # noqa: TC002 - FastAPI reads the annotation

from openenv.core.env_server._codec import json_schema
from openenv.core.env_server._routes.http import read_metadata, read_state
from openenv.core.env_server.route_config import (
    GetEndpointConfig,
    register_get_endpoints,
)
from openenv.core.env_server.types import (
    EnvironmentMetadata,
    HealthResponse,
    SchemaResponse,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.responses import Response

    from openenv.core.env_server.http_server import HTTPEnvServer


def register_state_route(app: FastAPI, server: HTTPEnvServer) -> None:
    """Add ``/state``."""

    async def endpoint(http: Request) -> Response:
        return await read_state(server, http)

    state = GetEndpointConfig(
        path="/state",
        handler=endpoint,
        response_model=server.state_model,
        tag="State Management",
        summary="Get current environment state",
        description="Return the state of the environment.",
    )
    register_get_endpoints(app, [state])


def register_info_routes(app: FastAPI, server: HTTPEnvServer) -> None:
    """Add ``/metadata``, ``/health`` and ``/schema``."""
    register_get_endpoints(app, [_metadata(server), _health()])

    async def get_schemas() -> SchemaResponse:
        return _schemas(server)

    app.add_api_route(
        "/schema",
        get_schemas,
        methods=["GET"],
        response_model=SchemaResponse,
        tags=["Schema"],
        summary="Get all JSON schemas",
        description="Return the JSON schemas of actions, observations and state.",
    )


def _metadata(server: HTTPEnvServer) -> GetEndpointConfig:
    async def endpoint(http: Request) -> Response:
        return await read_metadata(server, http)

    return GetEndpointConfig(
        path="/metadata",
        handler=endpoint,
        response_model=EnvironmentMetadata,
        tag="Environment Info",
        summary="Get environment metadata",
        description="Return what the environment says about itself.",
    )


def _health() -> GetEndpointConfig:
    async def endpoint() -> HealthResponse:
        return HealthResponse()

    return GetEndpointConfig(
        path="/health",
        handler=endpoint,
        response_model=HealthResponse,
        tag="Health",
        summary="Health check",
        description="Tell whether the server answers; touches no environment.",
    )


def _schemas(server: HTTPEnvServer) -> SchemaResponse:
    observation = json_schema(server.observation_cls)
    reset_cls = server.reset_observation_cls
    return SchemaResponse(
        action=json_schema(server.action_cls),
        observation=observation,
        state=json_schema(server.state_cls),
        reset_observation=observation if reset_cls is None else json_schema(reset_cls),
    )
