"""What a worker process does with a client that it was sent."""

from __future__ import annotations

from grid_world_env import Direction, GridWorldAction


def play(env):
    """Play a little and say which episode it was, and how many steps it counts."""
    env.reset(seed=1)
    env.step(GridWorldAction(direction=Direction.UP))
    state = env.state()
    env.close()
    return state.episode_id, state.step_count
