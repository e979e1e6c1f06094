"""Serve one golden application; run as `python serve.py APP`.

The port is chosen by the system and told on standard output as `PORT <n>`, so that
nothing has to guess one. Runs with the interpreter of either implementation.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from applications import make

# The largest recorded message is 20 MiB; uvicorn's own limit would be 16 MiB.
MAX_MESSAGE_BYTES = 100 * 1024 * 1024


def main() -> None:
    """Serve until the process is told to stop."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    config = uvicorn.Config(
        make(sys.argv[1]), log_level="warning", ws_max_size=MAX_MESSAGE_BYTES
    )
    print(f"PORT {listener.getsockname()[1]}", flush=True)  # noqa: T201 - the protocol
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
