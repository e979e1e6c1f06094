"""The rules of the grid world.

Reward of one step (a sum; `total_reward` in the state adds them up):

| part | value | when |
|---|---|---|
| living cost | -0.01 | every step |
| bump | -0.05 | the step ran into a wall or the edge |
| progress | +0.1 a cell nearer, -0.1 a cell farther | the step moved to a safe cell |
| goal | +1.0 | the goal was reached; the episode is done |
| pit | -1.0 | the agent fell; the episode is done |

Nearer and farther count the shortest safe way. Progress is potential-based shaping,
so it does not change which policy is best. An episode also ends, without a further
reward, when `max_steps` steps are used up.
"""

from __future__ import annotations

import random
from typing import Any
from uuid import uuid4

from typing_extensions import override

from grid_world_env.models import (
    Cell,
    Direction,
    GridWorldAction,
    GridWorldObservation,
    GridWorldState,
    Outcome,
)
from grid_world_env.server.layout import Layout, generate_layout
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

DEFAULT_SIZE = 8
STEP_COST = -0.01
BUMP_COST = -0.05
PROGRESS_REWARD = 0.1
GOAL_REWARD = 1.0
PIT_REWARD = -1.0


class GridWorldEnvironment(
    Environment[GridWorldAction, GridWorldObservation, GridWorldState]
):
    """One game a session: `reset` draws the board, `step` walks on it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._layout: Layout | None = None
        self._rows: list[str] = []
        self._position: Cell = (0, 0)
        self._over = True
        self._state = GridWorldState()

    @override
    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        size: int = DEFAULT_SIZE,
        max_steps: int | None = None,
        **kwargs: Any,
    ) -> GridWorldObservation:
        """Draw a board and put the agent on its start.

        Args:
            seed: decides the board; None draws one, told by `state.seed`.
            episode_id: name of the episode; None makes one.
            size: rows and columns, 3 to 32.
            max_steps: steps until the episode is cut; None means `size * size`.
            **kwargs: ignored, as upstream's interface allows more.

        Raises:
            ValueError: `size` or `max_steps` is out of range.
        """
        if max_steps is not None and max_steps < 1:
            message = f"max_steps must be at least 1, got {max_steps}"
            raise ValueError(message)
        board_seed = random.SystemRandom().getrandbits(31) if seed is None else seed
        layout = generate_layout(board_seed, size)
        self._layout, self._rows = layout, layout.rows()
        self._position, self._over = layout.start, False
        self._state = GridWorldState(
            episode_id=episode_id or str(uuid4()),
            seed=board_seed,
            size=size,
            max_steps=max_steps or size * size,
            position=layout.start,
            goal=layout.goal,
        )
        return self._observe(layout, Outcome.START, 0.0)

    @override
    def step(
        self,
        action: GridWorldAction,
        timeout_s: float | None = None,
        **kwargs: Any,
    ) -> GridWorldObservation:
        """Walk one cell.

        Args:
            action: where to walk.
            timeout_s: ignored; a step takes microseconds.
            **kwargs: ignored, as upstream's interface allows more.

        Raises:
            RuntimeError: no episode is running: `reset` comes next.
        """
        layout = self._layout
        if layout is None or self._over:
            message = "no episode is running: call reset() before step()"
            raise RuntimeError(message)
        outcome, reward = self._walk(layout, action.direction)
        used_up = self._state.step_count + 1 >= self._state.max_steps
        if used_up and outcome in (Outcome.MOVED, Outcome.BUMPED):
            outcome = Outcome.OUT_OF_STEPS
        self._over = outcome in (Outcome.GOAL, Outcome.PIT, Outcome.OUT_OF_STEPS)
        self._record(reward)
        return self._observe(layout, outcome, reward)

    @property
    @override
    def state(self) -> GridWorldState:
        """Tell the session's bookkeeping."""
        return self._state

    @override
    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the environment to catalogues and web pages."""
        return EnvironmentMetadata(
            name="grid_world_env",
            description="A seeded grid game: reach the goal, avoid the pits",
            version="0.1.0",
        )

    def _walk(self, layout: Layout, direction: Direction) -> tuple[Outcome, float]:
        target = layout.destination(self._position, direction)
        if target is None:
            return Outcome.BUMPED, STEP_COST + BUMP_COST
        before, self._position = self._position, target
        if target in layout.pits:
            return Outcome.PIT, STEP_COST + PIT_REWARD
        # Every safe cell the agent can stand on has a distance: it walked from start.
        progress = layout.distances[before] - layout.distances[target]
        reward = STEP_COST + PROGRESS_REWARD * progress
        if target == layout.goal:
            return Outcome.GOAL, reward + GOAL_REWARD
        return Outcome.MOVED, reward

    def _record(self, reward: float) -> None:
        state = self._state
        state.step_count += 1
        state.position = self._position
        state.total_reward += reward

    def _observe(
        self, layout: Layout, outcome: Outcome, reward: float
    ) -> GridWorldObservation:
        state = self._state
        return GridWorldObservation(
            done=self._over,
            reward=None if outcome is Outcome.START else reward,
            position=self._position,
            goal=layout.goal,
            grid=self._draw(),
            legal_moves=layout.legal_moves(self._position),
            steps_left=max(state.max_steps - state.step_count, 0),
            outcome=outcome,
        )

    def _draw(self) -> list[str]:
        row, column = self._position
        rows = self._rows.copy()
        rows[row] = f"{rows[row][:column]}A{rows[row][column + 1 :]}"
        return rows
