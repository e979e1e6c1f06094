"""What a rollout takes from and hands on in environment variables."""

from __future__ import annotations

import os


def server_environment(sessions: int) -> dict[str, str]:
    """Make the child server's environment variables.

    Args:
        sessions: the limit of sessions that it is told to take.
    """
    return {
        **os.environ,  # noqa: TID251 - a child inherits, and this is the config module
        "OPENENV_MAX_CONCURRENT_ENVS": str(sessions),
        "PYTHONUNBUFFERED": "1",
    }
