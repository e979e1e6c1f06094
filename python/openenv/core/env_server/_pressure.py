"""Tell threads that are blocked from threads that are starved.

A job that waits behind another for 20 ms needs a thread of its own if the other
one sleeps or waits for I/O.  It needs none if the process has no time to give:
then 32 threads that run one after the other are as good as 1,000, and more only
make it worse.  Two signs of a starved process, either is enough:

* the timer that takes the sample fires late (the interpreter lock, or the cores,
  are taken by others),
* the process used most of a core since the last sample.
"""

from __future__ import annotations

import time

MAX_LAG_S = 0.005  # CPython's switch interval: a later timer had to wait for the lock
MAX_LOAD = 0.7  # of one core
CALM_SAMPLES = 1  # intervals in a row, between timers that were both on time


class Pressure:
    """Follows how busy the process is; sampled by the watchdog's timer."""

    def __init__(self) -> None:
        self._since: tuple[float, float] | None = None
        self._calm = 0

    def begin(self) -> None:
        """Forget what was; call when the timer is armed after a pause."""
        self._since, self._calm = None, 0

    def sample(self, now_s: float, lag_s: float) -> bool:
        """End an interval and start the next.

        Args:
            now_s: monotonic time.
            lag_s: how late the timer fired.

        Returns:
            Whether the process had time to spare for several intervals.
        """
        if lag_s >= MAX_LAG_S:
            self.begin()  # the process's clock is not asked: it costs a syscall
            return False
        before, self._since = self._since, (now_s, time.process_time())
        if before is None:
            return False
        load = (self._since[1] - before[1]) / max(now_s - before[0], 1e-6)
        self._calm = self._calm + 1 if load < MAX_LOAD else 0
        return self._calm >= CALM_SAMPLES
