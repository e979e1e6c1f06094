"""The grid world's server side."""

from __future__ import annotations

from grid_world_env.server.environment import GridWorldEnvironment

__all__ = ["GridWorldEnvironment"]
