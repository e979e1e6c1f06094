"""A stock upstream 0.10 server of one async echo environment; run by its own Python.

Prints the port it has bound, then serves until its standard input ends.
"""

import os
import socket
import sys
import threading

import uvicorn

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class EchoAction(Action):
    message: str


class EchoObservation(Observation):
    message: str = ""


class EchoEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()

    def reset(self, seed=None, episode_id=None, **kwargs):
        return EchoObservation()

    def step(self, action, timeout_s=None, **kwargs):
        return EchoObservation(message=action.message, reward=1.0)

    async def reset_async(self, seed=None, episode_id=None, **kwargs):
        return self.reset()

    async def step_async(self, action, timeout_s=None, **kwargs):
        return self.step(action)

    @property
    def state(self):
        return self._state


def main():
    app = create_app(
        EchoEnvironment, EchoAction, EchoObservation, max_concurrent_envs=20_000
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(
        target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True
    ).start()
    config = uvicorn.Config(app, log_level="error", loop=sys.argv[1])
    uvicorn.Server(config).run(sockets=[listener])


main()
