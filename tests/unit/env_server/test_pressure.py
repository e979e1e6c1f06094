"""Blocked or starved: what the two signs say."""

from __future__ import annotations

import time

import pytest

from openenv.core.env_server._pressure import MAX_LAG_S, Pressure


@pytest.fixture
def cpu(monkeypatch):
    """A process clock that the test sets."""
    clock = {"s": 0.0}
    monkeypatch.setattr(time, "process_time", lambda: clock["s"])
    return clock


def samples(pressure, lags_s):
    """Sample every 10 ms with these lags."""
    pressure.begin()
    return [pressure.sample(0.01 * n, lag_s) for n, lag_s in enumerate(lags_s, 1)]


@pytest.mark.usefixtures("cpu")
def test_a_process_that_sleeps_is_calm_after_one_whole_interval():
    assert [False, True, True] == samples(Pressure(), [0.0, 0.0, 0.0])


def test_a_process_that_uses_its_core_is_not_calm(cpu):
    pressure = Pressure()
    pressure.begin()
    for number in range(1, 6):
        cpu["s"] = 0.009 * number

        assert not pressure.sample(0.01 * number, 0.0)


@pytest.mark.usefixtures("cpu")
def test_a_late_timer_starts_the_count_again():
    late = 2 * MAX_LAG_S

    assert [False, True, False, False, True] == samples(
        Pressure(), [0.0, 0.0, late, 0.0, 0.0]
    )
