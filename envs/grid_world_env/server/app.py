"""The grid world's web application: `uvicorn grid_world_env.server.app:app`."""

from __future__ import annotations

import argparse

from grid_world_env.models import (
    GridWorldAction,
    GridWorldObservation,
    GridWorldState,
)
from grid_world_env.server.environment import GridWorldEnvironment
from openenv.core.env_server import create_app, serve

# A session costs a few kilobytes; OPENENV_MAX_CONCURRENT_ENVS sets another limit.
MAX_CONCURRENT_ENVS = 64

app = create_app(
    GridWorldEnvironment,
    GridWorldAction,
    GridWorldObservation,
    env_name="grid_world_env",
    max_concurrent_envs=MAX_CONCURRENT_ENVS,
    state_cls=GridWorldState,
)


def main(host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve the grid world until the process is told to stop.

    Args:
        host: address to listen on; `0.0.0.0` means every interface.
        port: TCP port.
    """
    serve(app, host=host, port=port)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve the grid world")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = _parse_arguments()
    main(host=arguments.host, port=arguments.port)
