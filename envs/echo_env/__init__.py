"""An environment that echoes what its tools are given: the smallest one with tools."""

from __future__ import annotations

from echo_env.client import EchoEnv
from echo_env.models import EchoObservation
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction

__all__ = ["CallToolAction", "EchoEnv", "EchoObservation", "ListToolsAction"]
