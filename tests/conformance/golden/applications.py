"""The applications of the golden transcripts, by the name in their `app` field."""

from __future__ import annotations

import inspect
from typing import Any

import environments as envs

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import ConcurrencyConfig

# name: (environment class or factory, action class, what create_app is given)
APPLICATIONS: dict[str, tuple[Any, type, dict[str, Any]]] = {
    "sync1": (
        envs.EchoEnvironment,
        envs.EchoAction,
        {
            "env_name": "probe_env",
            "max_concurrent_envs": 1,
            "state_cls": envs.EchoState,
        },
    ),
    "sync1_plainstate": (
        envs.EchoEnvironment,
        envs.EchoAction,
        {"env_name": "probe_env", "max_concurrent_envs": 1},
    ),
    "strict4": (
        envs.StrictResetEnvironment,
        envs.EchoAction,
        {"env_name": "strict_env", "max_concurrent_envs": 4},
    ),
    "async4": (
        envs.AsyncEchoEnvironment,
        envs.EchoAction,
        {"env_name": "async_env", "max_concurrent_envs": 4},
    ),
    "needsreset": (
        envs.NeedsResetEnvironment,
        envs.EchoAction,
        {"env_name": "needs_env"},
    ),
    "broken": (
        envs.BrokenFactoryEnvironment,
        envs.EchoAction,
        {"env_name": "broken_env"},
    ),
    "validator": (
        envs.ValidatorEnvironment,
        envs.ValidatorAction,
        {"env_name": "validator_env", "max_concurrent_envs": 4},
    ),
    # Not recorded: many sessions, for the peer tests.
    "many": (
        envs.AsyncEchoEnvironment,
        envs.EchoAction,
        {
            "env_name": "many_env",
            "max_concurrent_envs": 64,
            "state_cls": envs.EchoState,
        },
    ),
    "wrapped": (
        envs.make_wrapped,
        envs.EchoAction,
        {"env_name": "wrapped_env", "max_concurrent_envs": 1},
    ),
}


# Those with tools: their class and the options of `create_app`.
TOOL_APPLICATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "mcp": ("McpEcho", {"max_concurrent_envs": 4}),
    "mcpstyle": ("McpStyleEnvironment", {"max_concurrent_envs": 1}),
    "prod": ("McpEcho", {"max_concurrent_envs": 4, "mode": "production"}),
    "reap": (
        "McpEcho",
        {
            "concurrency_config": ConcurrencyConfig(
                max_concurrent_envs=4, session_timeout=1.0
            )
        },
    ),
}


def make(name: str) -> Any:
    """Build the application `name`; unknown names raise `KeyError`."""
    if name in TOOL_APPLICATIONS:
        return make_with_tools(*TOOL_APPLICATIONS[name])
    environment, action, options = APPLICATIONS[name]
    # Upstream 0.3 has no `state_cls`.
    known = inspect.signature(create_app).parameters
    taken = {name: value for name, value in options.items() if name in known}
    return create_app(environment, action, envs.EchoObservation, **taken)


def make_with_tools(class_name: str, options: dict[str, Any]) -> Any:
    """Build an application whose actions call tools; loads `fastmcp`, seconds."""
    import mcp_environments  # noqa: PLC0415 - see above

    return create_app(
        getattr(mcp_environments, class_name),
        CallToolAction,
        CallToolObservation,
        env_name="mcp_env",
        **options,
    )
