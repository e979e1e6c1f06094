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
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000

app = create_app(
    EchoEnvironment,
    CallToolAction,
    CallToolObservation,
    env_name="echo_env",
    max_concurrent_envs=MAX_CONCURRENT_ENVS,
    reset_observation_cls=EchoObservation,
)


def main(host: str | None = None, port: int | None = None) -> None:
    """Serve the echo environment until the process is told to stop.

    Without arguments it is the script `server`: `--host` and `--port` of the command
    line tell where.

    Args:
        host: address to listen on, default `127.0.0.1`; `0.0.0.0` means every
            interface.
        port: TCP port, default 8000; 0 means a free one.
    """
    if host is None and port is None:
        arguments = _parse_arguments()
        host, port = arguments.host, arguments.port
    serve(
        app,
        host=DEFAULT_HOST if host is None else host,
        port=DEFAULT_PORT if port is None else port,
    )


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve the echo environment")
    parser.add_argument("--host", default=DEFAULT_HOST)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
