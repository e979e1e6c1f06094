"""Serve an application: `python serve.py MODULE:NAME [FOLDER]` prints `PORT <n>`."""

from __future__ import annotations

import sys
from importlib import import_module

from openenv.core.env_server import serve


def tell(_host: str, port: int) -> None:
    """Tell the test which port the system chose."""
    print(f"PORT {port}", flush=True)  # noqa: T201 - the protocol with the test


if __name__ == "__main__":
    sys.path[:0] = sys.argv[2:]
    module, _, name = sys.argv[1].partition(":")
    application = getattr(import_module(module), name)
    serve(application, host="127.0.0.1", port=0, on_ready=tell)
