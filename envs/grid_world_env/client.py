"""The typed client: actions in, observations out, nothing else to write."""

from __future__ import annotations

from grid_world_env.models import (
    GridWorldAction,
    GridWorldObservation,
    GridWorldState,
)
from openenv.core.env_client import EnvClient


class GridWorldEnv(EnvClient[GridWorldAction, GridWorldObservation, GridWorldState]):
    """Play the grid world of a running server.

    Example:
        ```python
        async with GridWorldEnv(base_url="http://localhost:8000") as env:
            result = await env.reset(seed=7)
            while not result.done:
                move = result.observation.legal_moves[0]
                result = await env.step(GridWorldAction(direction=move))
        ```
    """
