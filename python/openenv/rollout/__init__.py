"""Rollouts: many sessions play many episodes of one environment.

The command is `openenv rollout`; the same from Python:

Example:
    ```python
    options = RolloutOptions("envs/grid_world_env", sessions=100, episodes=1000)
    with Rollout(options) as rollout:
        asyncio.run(rollout.run())
    print(rollout.tally.mean_reward)
    ```
"""

from __future__ import annotations

from openenv.rollout.engine import Engine, Plan, Session, episode_seed
from openenv.rollout.errors import (
    InvalidRollout,
    NotAnAction,
    OutputFailed,
    RolloutError,
    ServerFailed,
    TooFewOpenFiles,
)
from openenv.rollout.policy import Episode, load_policy
from openenv.rollout.records import EpisodeError, EpisodeRecord, Tally
from openenv.rollout.run import Phase, Rollout, RolloutOptions
from openenv.rollout.sampling import compile_sampler, random_policy
from openenv.rollout.sinks import JsonLinesFile

__all__ = [
    "Engine",
    "Episode",
    "EpisodeError",
    "EpisodeRecord",
    "InvalidRollout",
    "JsonLinesFile",
    "NotAnAction",
    "OutputFailed",
    "Phase",
    "Plan",
    "Rollout",
    "RolloutError",
    "RolloutOptions",
    "ServerFailed",
    "Session",
    "Tally",
    "TooFewOpenFiles",
    "compile_sampler",
    "episode_seed",
    "load_policy",
    "random_policy",
]
