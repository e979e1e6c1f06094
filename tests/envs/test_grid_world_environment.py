"""The rules of the grid world, played without a server."""

from __future__ import annotations

import random

import pytest

from grid_world_env.models import (
    Direction,
    GridWorldAction,
    GridWorldObservation,
    GridWorldState,
    Outcome,
)
from grid_world_env.server.environment import GridWorldEnvironment
from grid_world_env.server.layout import generate_layout


def walk(environment, direction):
    return environment.step(GridWorldAction(direction=direction))


def way_to(environment, layout, wanted):
    """Find a move from the current cell whose destination `wanted` accepts."""
    cell = environment.state.position
    for way in Direction:
        target = layout.destination(cell, way)
        if target is not None and wanted(target):
            return way
    return None


def play_shortest(environment, seed, size=8):
    observation = environment.reset(seed=seed, size=size)
    layout = generate_layout(seed, size)
    observations = [observation]
    while not observation.done:
        here = layout.distances[environment.state.position]
        way = way_to(
            environment, layout, lambda c, n=here - 1: layout.distances.get(c) == n
        )
        observation = walk(environment, way)
        observations.append(observation)
    return layout, observations


def test_reset_shows_the_board_and_gives_no_reward():
    environment = GridWorldEnvironment()

    observation = environment.reset(seed=7)

    layout = generate_layout(7, 8)
    assert observation.outcome is Outcome.START
    assert observation.reward is None
    assert observation.done is False
    assert observation.position == layout.start
    assert observation.goal == layout.goal
    assert observation.steps_left == 64
    row, column = layout.start
    assert observation.grid[row][column] == "A"
    assert "".join(observation.grid).count("A") == 1


def test_shortest_way_reaches_the_goal_and_earns_progress_and_goal():
    environment = GridWorldEnvironment()

    layout, observations = play_shortest(environment, seed=3)

    steps = layout.distances[layout.start]
    assert observations[-1].outcome is Outcome.GOAL
    assert observations[-1].done is True
    assert len(observations) - 1 == steps
    assert environment.state.total_reward == pytest.approx(1.0 + steps * 0.09)


def test_bump_keeps_the_agent_and_costs():
    environment = GridWorldEnvironment()
    for seed in range(50):
        observation = environment.reset(seed=seed)
        blocked = set(Direction) - set(observation.legal_moves)
        if blocked:
            break
    before = environment.state.position

    observation = walk(environment, blocked.pop())

    assert observation.outcome is Outcome.BUMPED
    assert observation.position == before
    assert observation.reward == pytest.approx(-0.06)
    assert observation.done is False


def test_pit_ends_the_episode_with_a_loss():
    environment = GridWorldEnvironment()
    found = None
    for seed in range(300):
        environment.reset(seed=seed)
        layout = generate_layout(seed, 8)
        found = way_to(environment, layout, layout.pits.__contains__)
        if found is not None:
            break

    observation = walk(environment, found)

    assert observation.outcome is Outcome.PIT
    assert observation.reward == pytest.approx(-1.01)
    assert observation.done is True


def test_going_forth_and_back_earns_no_progress():
    environment = GridWorldEnvironment()
    layout = generate_layout(3, 8)
    environment.reset(seed=3)
    opposite = {
        Direction.UP: Direction.DOWN,
        Direction.DOWN: Direction.UP,
        Direction.LEFT: Direction.RIGHT,
        Direction.RIGHT: Direction.LEFT,
    }
    safe = lambda c: c in layout.distances and c != layout.goal  # noqa: E731 - a test's shorthand
    way = way_to(environment, layout, safe)

    rewards = [walk(environment, each).reward for each in (way, opposite[way])]

    assert sum(rewards) == pytest.approx(-0.02)


def test_last_step_cuts_the_episode():
    environment = GridWorldEnvironment()
    for seed in range(50):
        observation = environment.reset(seed=seed, max_steps=3)
        blocked = set(Direction) - set(observation.legal_moves)
        if blocked:
            break
    way = blocked.pop()

    observations = [walk(environment, way) for _ in range(3)]

    outcomes = [each.outcome for each in observations]
    assert outcomes == [Outcome.BUMPED, Outcome.BUMPED, Outcome.OUT_OF_STEPS]
    assert [each.steps_left for each in observations] == [2, 1, 0]
    assert observations[-1].done is True


def test_goal_on_the_last_step_is_a_goal():
    environment = GridWorldEnvironment()
    layout = generate_layout(3, 8)
    steps = layout.distances[layout.start]
    environment.reset(seed=3, max_steps=steps)

    observation = None
    for left in range(steps, 0, -1):
        wanted = left - 1
        way = way_to(
            environment, layout, lambda c, n=wanted: layout.distances.get(c) == n
        )
        observation = walk(environment, way)

    assert observation.outcome is Outcome.GOAL


@pytest.mark.parametrize("played", [False, True])
def test_step_without_a_running_episode_says_what_to_call(played):
    environment = GridWorldEnvironment()
    if played:
        play_shortest(environment, seed=3)

    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        walk(environment, Direction.UP)


def test_reset_without_a_seed_tells_the_seed_it_drew():
    environment = GridWorldEnvironment()

    first = environment.reset()
    seed = environment.state.seed
    again = environment.reset(seed=seed)

    assert first.grid == again.grid


def test_state_tells_the_episode():
    environment = GridWorldEnvironment()
    environment.reset(seed=3, episode_id="e-1", size=6, max_steps=9)
    walk(environment, Direction.UP)

    state = environment.state

    assert isinstance(state, GridWorldState)
    assert (state.episode_id, state.seed, state.size) == ("e-1", 3, 6)
    assert (state.max_steps, state.step_count) == (9, 1)


@pytest.mark.parametrize("arguments", [{"size": 2}, {"size": 99}, {"max_steps": 0}])
def test_reset_out_of_range_is_refused_and_the_old_episode_goes_on(arguments):
    environment = GridWorldEnvironment()
    environment.reset(seed=3)

    with pytest.raises(ValueError, match=r"must be"):
        environment.reset(seed=4, **arguments)

    assert walk(environment, Direction.UP).steps_left == 63


def test_same_actions_give_the_same_episode():
    def play():
        environment, rng = GridWorldEnvironment(), random.Random(1)
        rewards = []
        observation = environment.reset(seed=11)
        while not observation.done:
            observation = walk(environment, rng.choice(list(Direction)))
            rewards.append(observation.reward)
        return rewards

    assert play() == play()


def test_observation_survives_json():
    environment = GridWorldEnvironment()
    observation = environment.reset(seed=3)

    text = observation.model_dump_json()

    assert GridWorldObservation.model_validate_json(text) == observation
