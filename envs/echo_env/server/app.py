"""The echo environment's web application: `uvicorn echo_env.server.app:app`."""

from __future__ import annotations

import argparse

from echo_env.models import EchoObservation
from echo_env.server.environment import EchoEnvironment
from openenv.core.env_server import (
    CallToolAction,
    CallToolObservation,
    create_app,
    serve,
)

# A session has a FastMCP server of its own. OPENENV_MAX_CONCURRENT_ENVS sets another
# limit.
MAX_CONCURRENT_ENVS = 64

app = create_app(
    EchoEnvironment,
    CallToolAction,
    CallToolObservation,
    env_name="echo_env",
    max_concurrent_envs=MAX_CONCURRENT_ENVS,
    reset_observation_cls=EchoObservation,
)


def main(host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve the echo environment until the process is told to stop.

    Args:
        host: address to listen on; `0.0.0.0` means every interface.
        port: TCP port.
    """
    serve(app, host=host, port=port)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve the echo environment")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = _parse_arguments()
    main(host=arguments.host, port=arguments.port)
