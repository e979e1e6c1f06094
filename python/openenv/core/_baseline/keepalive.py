"""When to ping, and when silence means that the peer is gone.

Anything heard is a sign of life, so a busy connection is never pinged::

    quiet ──interval──> pinged ──timeout──> grace ──1 s──> dead
      ^                   │                   │
      └────── heard ──────┴───────────────────┘

``grace`` is for this side's own pauses: a loop that was busy runs its timers before it
reads what has long arrived, so one more turn of reading is granted.
"""

from __future__ import annotations

import math
from typing import Final, Literal

_GRACE_S: Final = 1.0  # a turn of any loop that still lives


class Keepalive:
    """Hold the state of one connection's pings; times are seconds of any clock.

    Args:
        interval_s: Idle time before a ping; None: no pings.
        timeout_s: Silence after a ping that means the end; None: never.
    """

    def __init__(self, interval_s: float | None, timeout_s: float | None) -> None:
        self._interval_s = math.inf if interval_s is None else interval_s
        self._timeout_s = None if timeout_s == math.inf else timeout_s
        self._state: Literal["quiet", "pinged", "grace"] = "quiet"
        self.due = math.inf
        """When `tick` has to be called next; infinity for never."""

    def heard(self, now: float) -> None:
        """Take note of a sign of life."""
        self._enter("quiet", now + self._interval_s)

    def tick(self, now: float) -> Literal["nothing", "ping", "dead"]:
        """Tell what is due."""
        if self.due > now:
            return "nothing"
        if self._state == "grace":
            return "dead"
        if self._state == "pinged" and self._timeout_s is not None:
            self._enter("grace", now + _GRACE_S)
            return "nothing"
        wait_s = self._interval_s if self._timeout_s is None else self._timeout_s
        self._enter("pinged", now + wait_s)
        return "ping"

    def _enter(self, state: Literal["quiet", "pinged", "grace"], due: float) -> None:
        self._state, self.due = state, due
