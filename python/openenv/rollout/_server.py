"""The child's side of `ChildServer`: serve an environment until the parent is gone."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from openenv.core.env_server import serve
from openenv.rollout.environment import EnvironmentFolder, load_application
from openenv.rollout.errors import InvalidRollout

# How long the server may take to close its environments when the parent is gone.
_GRACE_S: Final = 12.0
_STANDARD_INPUT: Final = 0


def main() -> None:
    """Serve the environment named by the arguments on a free port of this machine."""
    arguments = _parse_arguments()
    # Children of the environment must not hold the pipe that tells of our end.
    os.set_inheritable(arguments.ready_fd, False)
    lifeline = _take_standard_input()
    threading.Thread(
        target=_end_with_parent, args=(lifeline,), name="openenv-lifeline", daemon=True
    ).start()
    environment = EnvironmentFolder(arguments.folder, "", arguments.app)
    try:
        application = load_application(environment)
    except InvalidRollout as error:
        _tell(arguments.ready_fd, {"error": str(error)})
        sys.exit(1)
    _serve(application, arguments.ready_fd)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="openenv.rollout._server")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--app", required=True)
    parser.add_argument("--ready-fd", type=int, required=True)
    return parser.parse_args()


def _take_standard_input() -> int:
    """Keep the parent's pipe for the lifeline; others read an empty standard input."""
    lifeline = os.dup(_STANDARD_INPUT)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, _STANDARD_INPUT)
    os.close(empty)
    return lifeline


def _end_with_parent(lifeline: int) -> None:
    while os.read(lifeline, 1024):
        continue
    # Only a group of our own: the caller's would take the caller's shell with it.
    if os.getpgrp() != os.getpid():
        os.kill(os.getpid(), signal.SIGTERM)
        return
    os.killpg(os.getpgrp(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _serve(application: Any, ready_fd: int) -> None:  # noqa: ANN401 - any ASGI app
    def tell(_host: str, port: int) -> None:
        _tell(ready_fd, {"port": port})

    serve(application, host="127.0.0.1", port=0, on_ready=tell)


def _tell(ready_fd: int, message: dict[str, object]) -> None:
    os.write(ready_fd, json.dumps(message).encode() + b"\n")
    os.close(ready_fd)


if __name__ == "__main__":
    main()
