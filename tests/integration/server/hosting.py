"""A real server in a thread of the test process, and environments to serve."""

# ruff: noqa: ARG002 - the signatures are those of Environment

from __future__ import annotations

import asyncio
import json
import threading
import time
import warnings
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar

from websockets.asyncio.client import connect

from openenv.core.env_server import Action, Environment, Observation, State, create_app
from openenv.core.env_server._serve import Server

with warnings.catch_warnings():
    # It would rather have httpx2, which is no dependency of this project.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient  # noqa: F401 - for the tests

RESET = '{"type":"reset","data":{}}'
STATE = '{"type":"state"}'
CLOSE = '{"type":"close"}'


class Word(Action):
    """Say something; the other fields steer the environment."""

    text: str = ""
    sleep_s: float = 0.0


class Echo(Observation):
    text: str = ""
    thread: int = 0
    payload: Any = None


class EchoState(State):
    last: str = ""


class EchoEnvironment(Environment[Word, Echo, EchoState]):
    """Echoes; remembers what happened to its instances and in which thread."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    events: ClassVar[list[tuple[str, int]]] = []

    def __init__(self):
        super().__init__()
        self._state = EchoState()
        self._note("init")

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._note("reset")
        self._state = EchoState(episode_id=episode_id)
        return Echo(text="reset", thread=threading.get_ident())

    def step(self, action, timeout_s=None, **kwargs):
        self._note("step")
        self._state.step_count += 1
        self._state.last = action.text
        time.sleep(action.sleep_s)
        return self.answer(action)

    def answer(self, action):
        return Echo(text=action.text, thread=threading.get_ident(), reward=1.0)

    @property
    def state(self):
        self._note("state")
        return self._state

    def close(self):
        self._note("close")

    def _note(self, what):
        type(self).events.append((what, threading.get_ident()))

    @classmethod
    def count(cls, what):
        return sum(event == what for event, _ in cls.events)

    @classmethod
    def variant(cls, **members):
        """Make a class with its own list of events."""
        return type(cls.__name__, (cls,), {"events": [], **members})


class AsyncEchoEnvironment(EchoEnvironment):
    async def reset_async(self, seed=None, episode_id=None, **kwargs):
        return self.reset(seed, episode_id, **kwargs)

    async def step_async(self, action, timeout_s=None, **kwargs):
        self._note("step")
        self._state.step_count += 1
        self._state.last = action.text
        try:
            await asyncio.sleep(action.sleep_s)
        except asyncio.CancelledError:
            self._note("cancelled")
            raise
        return self.answer(action)


class Running:
    """A server that runs."""

    def __init__(self, app, port):
        self.app = app
        self.port = port
        self.server = app.state.openenv_server
        self.url = f"http://127.0.0.1:{port}"
        self.ws_url = f"ws://127.0.0.1:{port}/ws"

    @asynccontextmanager
    async def session(self, **options):
        """Open a raw connection to /ws."""
        options = {"compression": None, "max_size": None, "proxy": None, **options}
        async with connect(self.ws_url, **options) as websocket:
            yield websocket


@contextmanager
def running(app):
    """Serve the app until the end of the block."""
    ready = threading.Event()
    server = Server(app, port=0, on_ready=lambda _host, _port: ready.set())
    thread = threading.Thread(target=server.run, name="test-server")
    thread.start()
    try:
        assert ready.wait(10)
        yield Running(app, server.port)
    finally:
        server.stop()
        thread.join(20)
    assert not thread.is_alive()


@contextmanager
def serving(environment=EchoEnvironment, action=Word, observation=Echo, **options):
    """Serve an environment class until the end of the block."""
    options = {"max_concurrent_envs": 8, **options}
    with running(create_app(environment, action, observation, **options)) as server:
        yield server


async def ask(websocket, message):
    """Send a message and return the decoded answer."""
    await websocket.send(
        message if isinstance(message, str | bytes) else json.dumps(message)
    )
    return json.loads(await websocket.recv())


def step(**fields):
    """Make a step message."""
    return json.dumps({"type": "step", "data": fields})


async def until(condition, timeout_s=5.0):
    """Wait until the condition holds; returns how long it took, in seconds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < timeout_s, "the condition never held"
        await asyncio.sleep(0.002)
    return time.monotonic() - start


def close_code(websocket):
    """Return the code of the close frame that the server sent."""
    return websocket.protocol.close_rcvd.code


def pool_threads(others):
    """Count pool threads but for those of servers that other tests left."""
    new = set(threading.enumerate()) - others
    return sum(thread.name.startswith("openenv-env-") for thread in new)
