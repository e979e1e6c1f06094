"""Serve one application of first light: `python serve.py NAME` prints `PORT <n>`."""

from __future__ import annotations

import sys

from applications import make

from openenv.core.env_server import serve

if __name__ == "__main__":
    serve(
        make(sys.argv[1]),
        host="127.0.0.1",
        port=0,
        on_ready=lambda port: print(f"PORT {port}", flush=True),  # noqa: T201 - told
    )
