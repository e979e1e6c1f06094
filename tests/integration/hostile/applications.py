"""The environment that hostile clients meet, and `GET /lives`: what became of it.

`lives` tells how many environments were opened, closed and closed again, how many
steps were made, and how many tasks the server's loop has now.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

SESSIONS = 64


class Move(Action):
    number: int = 0
    pad: str = ""


class Seen(Observation):
    number: int = 0


class Lives:
    """Counts of events, counted from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def note(self, event: str) -> None:
        """Count an event."""
        with self._lock:
            self._counts[event] += 1

    def told(self) -> dict[str, int]:
        """Return the counts."""
        with self._lock:
            return {event: self._counts[event] for event in EVENTS}


EVENTS = ("opened", "closed", "closed_again", "steps")
LIVES = Lives()


class Mortal(Environment):
    """Answers a step with its number, and counts its own closes."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._is_closed = False
        LIVES.note("opened")

    def reset(self, **kwargs: Any) -> Seen:
        self._state = State(episode_id=kwargs.get("episode_id"))
        return Seen()

    def step(self, action: Move, **kwargs: Any) -> Seen:
        LIVES.note("steps")
        self._state.step_count += 1
        return Seen(number=action.number, reward=float(len(kwargs)))

    @property
    def state(self) -> State:
        return self._state

    def close(self) -> None:
        LIVES.note("closed_again" if self._is_closed else "closed")
        self._is_closed = True


mortal = create_app(Mortal, Move, Seen, max_concurrent_envs=SESSIONS)


@mortal.get("/lives")
async def lives() -> dict[str, int]:
    """Tell what became of the environments."""
    return LIVES.told() | {"tasks": len(asyncio.all_tasks())}
