"""The board: solvable, seeded, in range."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from grid_world_env.models import Direction
from grid_world_env.server.layout import (
    MAX_SIZE,
    MIN_SIZE,
    OFFSETS,
    generate_layout,
)

SEEDS = st.integers(min_value=-(2**63), max_value=2**63)
SIZES = st.integers(min_value=MIN_SIZE, max_value=16)


@given(seed=SEEDS, size=SIZES)
@settings(max_examples=200, deadline=None)
def test_goal_can_be_reached_from_the_start_by_safe_cells(seed, size):
    layout = generate_layout(seed, size)

    cell, steps = layout.start, 0
    while cell != layout.goal:
        nearer = [
            target
            for way in layout.legal_moves(cell)
            if (target := layout.destination(cell, way)) is not None
            and layout.distances.get(target) == layout.distances[cell] - 1
        ]
        assert nearer
        cell, steps = nearer[0], steps + 1

    assert layout.distances[layout.start] == steps
    assert steps > 0


@given(seed=SEEDS, size=SIZES)
@settings(max_examples=100, deadline=None)
def test_each_kind_of_cell_excludes_the_others(seed, size):
    layout = generate_layout(seed, size)
    special = {layout.start, layout.goal}

    assert not (layout.walls & layout.pits)
    assert not (special & (layout.walls | layout.pits))
    assert len(special) == 2
    assert set(layout.distances).isdisjoint(layout.walls | layout.pits)


@given(seed=SEEDS, size=SIZES)
@settings(max_examples=50, deadline=None)
def test_same_seed_and_size_give_the_same_board(seed, size):
    assert generate_layout(seed, size) == generate_layout(seed, size)


def test_different_seeds_give_different_boards():
    boards = {tuple(generate_layout(seed, 8).rows()) for seed in range(50)}

    assert len(boards) == 50


def test_board_of_a_seed_never_changes_between_releases():
    assert generate_layout(7, 5).rows() == EXPECTED_BOARD


@pytest.mark.parametrize("size", [MIN_SIZE - 1, MAX_SIZE + 1, 0, -3])
def test_size_out_of_range_is_refused(size):
    with pytest.raises(ValueError, match="size must be from 3 to 32"):
        generate_layout(0, size)


@given(seed=SEEDS, size=SIZES)
@settings(max_examples=50, deadline=None)
def test_a_move_is_legal_exactly_when_it_has_a_destination(seed, size):
    layout = generate_layout(seed, size)

    for cell in layout.distances:
        legal = layout.legal_moves(cell)
        for way in Direction:
            row, column = OFFSETS[way]
            target = (cell[0] + row, cell[1] + column)
            free = (
                0 <= target[0] < size
                and 0 <= target[1] < size
                and target not in layout.walls
            )
            assert (way in legal) == free


EXPECTED_BOARD = [".....", ".##.O", "..#..", "..G..", "#...."]
