"""A small seeded grid game: walk to the goal, mind the walls and the pits."""

from __future__ import annotations

from grid_world_env.client import GridWorldEnv
from grid_world_env.models import (
    Direction,
    GridWorldAction,
    GridWorldObservation,
    GridWorldState,
    Outcome,
)

__all__ = [
    "Direction",
    "GridWorldAction",
    "GridWorldEnv",
    "GridWorldObservation",
    "GridWorldState",
    "Outcome",
]
