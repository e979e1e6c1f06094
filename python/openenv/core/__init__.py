"""OpenEnv's clients and server: upstream's names, imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv.core import _logs as _logs, env_server
from openenv.core._faces import lazy_getattr

if TYPE_CHECKING:
    from openenv.core.env_client import EnvClient as EnvClient
    from openenv.core.env_server import *  # noqa: F403 - all of it, as upstream
    from openenv.core.generic_client import (
        GenericAction as GenericAction,
        GenericEnvClient as GenericEnvClient,
    )
    from openenv.core.mcp_client import (
        MCPClientBase as MCPClientBase,
        MCPToolClient as MCPToolClient,
    )
    from openenv.core.sync_client import SyncEnvClient as SyncEnvClient

_MODULES: dict[str, tuple[str, ...]] = {
    "openenv.core.env_client": ("EnvClient",),
    "openenv.core.generic_client": ("GenericAction", "GenericEnvClient"),
    "openenv.core.mcp_client": ("MCPClientBase", "MCPToolClient"),
    "openenv.core.sync_client": ("SyncEnvClient",),
    **env_server.MODULES,
}

__all__ = [
    "EnvClient",
    "GenericAction",
    "GenericEnvClient",
    "MCPClientBase",
    "MCPToolClient",
    "SyncEnvClient",
]
__all__ += env_server.__all__

if not TYPE_CHECKING:  # a checker shall find a wrong name
    __getattr__ = lazy_getattr(__name__, _MODULES, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
