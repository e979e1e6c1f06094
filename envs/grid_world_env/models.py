"""What the client and the server of the grid world say to each other."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from openenv.core.env_server.types import Action, Observation, State

Cell = tuple[int, int]
"""A place on the grid: (row, column), both from 0, row 0 at the top."""


class Direction(StrEnum):
    """A way to walk: one cell a step."""

    UP = "up"
    DOWN = "down"
    LEFT = "left"
    RIGHT = "right"


class Outcome(StrEnum):
    """What the last call did to the agent."""

    START = "start"
    MOVED = "moved"
    BUMPED = "bumped"
    GOAL = "goal"
    PIT = "pit"
    OUT_OF_STEPS = "out_of_steps"


class GridWorldAction(Action):
    """Walk one cell; a wall or the edge keeps the agent where it is."""

    direction: Direction = Field(description="where to walk")


class GridWorldObservation(Observation):
    """The whole board as the agent sees it after a reset or a step.

    `grid` has one string a row: `A` agent, `G` goal, `#` wall, `O` pit, `.` floor.
    `legal_moves` names the directions that do not bump; a pit is a legal move.
    """

    position: Cell = Field(description="the agent's (row, column)")
    goal: Cell = Field(description="the goal's (row, column)")
    grid: list[str] = Field(description="one string a row, top row first")
    legal_moves: list[Direction] = Field(description="moves that do not bump")
    steps_left: int = Field(ge=0, description="steps until the episode is cut")
    outcome: Outcome = Field(description="what the last call did")


class GridWorldState(State):
    """The session's bookkeeping; `seed` and `size` replay the same layout."""

    seed: int = 0
    size: int = 0
    max_steps: int = 0
    position: Cell = (0, 0)
    goal: Cell = (0, 0)
    total_reward: float = 0.0
