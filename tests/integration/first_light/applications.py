"""The environments that the figures of first light are measured with.

`GET /environments` tells how many environments are open now: constructed and not yet
closed.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

if TYPE_CHECKING:
    from fastapi import FastAPI

SESSIONS = 1000
LONG_STEP_S = 1.0


class Move(Action):
    number: int = 0


class Seen(Observation):
    number: int = 0


class OpenCount:
    """How many environments are open, counted from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.value = 0

    def add(self, difference: int) -> None:
        """Add to the count."""
        with self._lock:
            self.value += difference


OPEN = OpenCount()


class QuickEnvironment(Environment):
    """A synchronous environment whose steps take far less than a millisecond."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    step_s = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        OPEN.add(1)

    def reset(self, **kwargs: Any) -> Seen:
        self._state = State(episode_id=kwargs.get("episode_id"))
        return Seen()

    def step(self, action: Move, **kwargs: Any) -> Seen:
        if self.step_s:
            time.sleep(self.step_s)
        self._state.step_count += 1
        return Seen(number=action.number, reward=float(len(kwargs)))

    @property
    def state(self) -> State:
        return self._state

    def close(self) -> None:
        OPEN.add(-1)


class SlowEnvironment(QuickEnvironment):
    """A synchronous environment whose steps sleep a second."""

    step_s = LONG_STEP_S


def make(environment: type[QuickEnvironment]) -> FastAPI:
    """Serve `environment` and the count of open ones."""
    app = create_app(environment, Move, Seen, max_concurrent_envs=SESSIONS)

    @app.get("/environments")
    async def environments() -> int:
        return OPEN.value

    return app


quick = make(QuickEnvironment)
slow = make(SlowEnvironment)
