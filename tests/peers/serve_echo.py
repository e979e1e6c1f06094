"""Serve `echo_env`'s environment with the interpreter of either side.

The port is told on standard output as `PORT <n>`.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import sys
from pathlib import Path

import uvicorn

sys.path.insert(0, str(Path(__file__).parents[2] / "envs"))

from echo_env.models import EchoObservation
from echo_env.server.environment import EchoEnvironment
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation

MAX_MESSAGE_BYTES = 100 * 1024 * 1024  # uvicorn's own limit would be 16 MiB


def main() -> None:
    """Serve until the process is told to stop."""
    options = {"env_name": "echo_env", "max_concurrent_envs": 4}
    if "reset_observation_cls" in inspect.signature(create_app).parameters:
        options["reset_observation_cls"] = EchoObservation  # newer than 0.3
    app = create_app(EchoEnvironment, CallToolAction, CallToolObservation, **options)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", ws_max_size=MAX_MESSAGE_BYTES)
    print(f"PORT {listener.getsockname()[1]}", flush=True)  # noqa: T201 - the protocol
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
