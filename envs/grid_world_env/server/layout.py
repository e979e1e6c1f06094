"""The board: where the walls, pits, start and goal are. Pure, seeded, frozen.

A layout is always solvable: the start is a cell from which the goal can be reached
without touching a wall or a pit. Obstacles are thinned out until that is so, which
ends at the latest with an empty board.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grid_world_env.models import Cell, Direction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIN_SIZE = 3
MAX_SIZE = 32
WALL_SHARE = 0.18
PIT_SHARE = 0.06

OFFSETS: dict[Direction, Cell] = {
    Direction.UP: (-1, 0),
    Direction.DOWN: (1, 0),
    Direction.LEFT: (0, -1),
    Direction.RIGHT: (0, 1),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """One board; `distances` are steps to the goal from every safe cell."""

    size: int
    start: Cell
    goal: Cell
    walls: frozenset[Cell]
    pits: frozenset[Cell]
    distances: Mapping[Cell, int]

    def destination(self, cell: Cell, direction: Direction) -> Cell | None:
        """Tell where a walk from `cell` ends, or None when it would bump."""
        row, column = OFFSETS[direction]
        target = (cell[0] + row, cell[1] + column)
        inside = 0 <= target[0] < self.size and 0 <= target[1] < self.size
        return target if inside and target not in self.walls else None

    def legal_moves(self, cell: Cell) -> list[Direction]:
        """List the directions that do not bump, in the order of `Direction`."""
        return [way for way in Direction if self.destination(cell, way) is not None]

    def rows(self) -> list[str]:
        """Draw the board without the agent, one string a row."""
        return [
            "".join(self._symbol((row, column)) for column in range(self.size))
            for row in range(self.size)
        ]

    def _symbol(self, cell: Cell) -> str:
        if cell == self.goal:
            return "G"
        if cell in self.walls:
            return "#"
        return "O" if cell in self.pits else "."


def generate_layout(seed: int, size: int) -> Layout:
    """Make the board that belongs to a seed and a size.

    Args:
        seed: any integer; the same seed and size give the same board everywhere.
        size: rows and columns, from `MIN_SIZE` to `MAX_SIZE`.

    Returns:
        A solvable board whose start is as far from the goal as half the cells are.

    Raises:
        ValueError: `size` is out of range (the caller's fault).
    """
    if not MIN_SIZE <= size <= MAX_SIZE:
        message = f"size must be from {MIN_SIZE} to {MAX_SIZE}, got {size}"
        raise ValueError(message)
    rng = random.Random(f"{seed}/{size}")  # noqa: S311 - a game board, not a secret
    walls, pits = int(size * size * WALL_SHARE), int(size * size * PIT_SHARE)
    while True:
        layout = _scatter(rng, size, walls, pits)
        if layout is not None:
            return layout
        walls, pits = walls * 3 // 4, pits * 3 // 4


def _scatter(rng: random.Random, size: int, walls: int, pits: int) -> Layout | None:
    cells = [(row, column) for row in range(size) for column in range(size)]
    rng.shuffle(cells)
    goal = cells[0]
    wall_cells = frozenset(cells[1 : 1 + walls])
    pit_cells = frozenset(cells[1 + walls : 1 + walls + pits])
    distances = _distances_to(goal, size, wall_cells | pit_cells)
    by_distance = sorted(distances, key=lambda cell: (distances[cell], cell))
    far_half = by_distance[len(by_distance) // 2 :]
    # Fewer reachable cells than rows would make a game of one or two moves.
    if len(by_distance) < max(size, 2):
        return None
    return Layout(size, rng.choice(far_half), goal, wall_cells, pit_cells, distances)


def _distances_to(goal: Cell, size: int, blocked: frozenset[Cell]) -> dict[Cell, int]:
    distances = {goal: 0}
    queue = deque([goal])
    while queue:
        cell = queue.popleft()
        for neighbour in _neighbours(cell, size):
            if neighbour not in distances and neighbour not in blocked:
                distances[neighbour] = distances[cell] + 1
                queue.append(neighbour)
    return distances


def _neighbours(cell: Cell, size: int) -> Iterator[Cell]:
    for row, column in OFFSETS.values():
        target = (cell[0] + row, cell[1] + column)
        if 0 <= target[0] < size and 0 <= target[1] < size:
            yield target
