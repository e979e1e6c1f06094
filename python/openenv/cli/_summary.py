"""What is shown when a rollout has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from openenv.rollout import Rollout

_MAX_EXAMPLE_CHARACTERS: Final = 200


def show_summary(rollout: Rollout, console: Console) -> None:
    """Print the sums, and the failures by reason where there are any."""
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in _rows(rollout):
        table.add_row(name, Text(value))
    console.print(table)
    tally = rollout.tally
    if tally.reasons or tally.refused:
        console.print(_make_reason_table(rollout))


def _rows(rollout: Rollout) -> Iterator[tuple[str, str]]:
    options, tally = rollout.options, rollout.tally
    seconds = tally.playing_s
    yield "environment", options.environment or options.base_url or ""
    yield "sessions at once", f"{tally.peak_sessions:,}"
    yield "episodes finished", f"{tally.succeeded:,} of {tally.planned:,}"
    yield "episodes failed", f"{tally.failed:,}"
    if tally.not_run:
        yield "episodes not run", f"{tally.not_run:,}"
    if tally.truncated:
        yield "cut by --max-steps", f"{tally.truncated:,}"
    yield "steps", f"{tally.steps:,}"
    yield "steps/s", f"{tally.steps / seconds:,.0f}" if seconds else "-"
    if tally.mean_reward is not None:
        yield "mean reward", f"{tally.mean_reward:.4f}"
    yield "playing time", f"{seconds:.1f} s"
    yield "seed", str(options.seed)
    if options.out is not None:
        yield "records", str(options.out)


def _make_reason_table(rollout: Rollout) -> Table:
    tally = rollout.tally
    table = Table("reason", "count", "of", "first message")
    for what, reasons in (("episodes", tally.reasons), ("sessions", tally.refused)):
        for reason, count in reasons.most_common():
            example = tally.examples.get(reason, "")[:_MAX_EXAMPLE_CHARACTERS]
            table.add_row(Text(reason), f"{count:,}", what, Text(example))
    return table
