"""The progress bar of a rollout; without a terminal there is none.

It is refreshed by a task of the rollout's own loop: no thread, no lock on the hot path.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn as Elapsed,
)

from openenv.rollout import Phase

if TYPE_CHECKING:
    from rich.console import Console

    from openenv.rollout import Rollout

_REFRESH_S: Final = 0.125
# The shown rate is the mean of this many seconds: calm to read, quick to tell a stall.
_RATE_WINDOW_S: Final = 3.0


async def run_with_progress(rollout: Rollout, console: Console) -> None:
    """Play a rollout and show how far it is."""
    if not console.is_terminal:
        await rollout.run()
        return
    with _make_progress(console) as progress:
        bar = _Bar(progress, rollout)
        ticker = asyncio.create_task(bar.keep_fresh())
        try:
            await rollout.run()
        finally:
            ticker.cancel()
            bar.refresh()


class _Bar:
    def __init__(self, progress: Progress, rollout: Rollout) -> None:
        self._progress = progress
        self._rollout = rollout
        self._task = progress.add_task("", total=1, rate="", failures="")
        self._samples: deque[tuple[float, int]] = deque()

    async def keep_fresh(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(_REFRESH_S)

    def refresh(self) -> None:
        phase, tally = self._rollout.phase, self._rollout.tally
        opening = phase in (Phase.STARTING, Phase.OPENING)
        done = tally.open_sessions if opening else tally.finished
        options = self._rollout.options
        sessions = min(options.sessions, options.episodes)
        self._progress.update(
            self._task,
            description=phase.value,
            completed=done,
            total=sessions if opening else tally.planned,
            rate="" if opening else f"{self._steps_per_s():,.0f} steps/s",
            failures=f"{tally.failed} failed" if tally.failed else "",
        )
        self._progress.refresh()

    def _steps_per_s(self) -> float:
        now, steps = time.monotonic(), self._rollout.tally.steps
        self._samples.append((now, steps))
        while now - self._samples[0][0] > _RATE_WINDOW_S:
            self._samples.popleft()
        began, before = self._samples[0]
        return (steps - before) / (now - began) if now > began else 0.0


def _make_progress(console: Console) -> Progress:
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("[red]{task.fields[failures]}"),
        Elapsed(),
        console=console,
        auto_refresh=False,
    )
