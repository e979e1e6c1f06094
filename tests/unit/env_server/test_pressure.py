"""Blocked or starved: what the two signs say."""

from __future__ import annotations

import time

import pytest

from openenv.core.env_server._pressure import CALM_SAMPLES, MAX_LAG_S, Pressure


@pytest.fixture
def cpu(monkeypatch):
    """A process clock that the test sets."""
    clock = {"s": 0.0}
    monkeypatch.setattr(time, "process_time", lambda: clock["s"])
    return clock


@pytest.mark.usefixtures("cpu")
def test_a_process_that_sleeps_is_calm_after_several_samples():
    pressure = Pressure()
    pressure.begin(0.0)
    samples = [pressure.sample(0.01 * n, 0.0) for n in range(1, CALM_SAMPLES + 1)]

    assert [False] * (CALM_SAMPLES - 1) + [True] == samples


def test_a_process_that_uses_its_core_is_not_calm(cpu):
    pressure = Pressure()
    pressure.begin(0.0)
    for number in range(1, 6):
        cpu["s"] = 0.009 * number

        assert not pressure.sample(0.01 * number, 0.0)


@pytest.mark.usefixtures("cpu")
def test_a_late_timer_starts_the_count_again():
    pressure = Pressure()
    pressure.begin(0.0)
    lags = [0.0, 2 * MAX_LAG_S, 0.0, 0.0]
    samples = [pressure.sample(0.01 * n, lag) for n, lag in enumerate(lags, 1)]

    assert [False, False, False, True] == samples
