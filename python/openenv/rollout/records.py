"""What is known of one episode, and the sums over all of them."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from openenv.errors import OpenEnvError, ValidationFailed

if TYPE_CHECKING:
    from collections.abc import Iterable


class EpisodeError(msgspec.Struct, frozen=True):
    """Why an episode failed: the exception's class name and its text.

    The text of a foreign exception ends with the line that raised it, since a policy's
    `KeyError: 'x'` alone tells little; that of a refused action names the fields.
    """

    type: str
    message: str

    @classmethod
    def of(cls, error: Exception) -> EpisodeError:
        """Describe an exception."""
        if isinstance(error, ValidationFailed) and error.errors:
            return cls(type(error).__name__, _tell_fields(error))
        message = str(error)
        frames = traceback.extract_tb(error.__traceback__)
        if frames and not isinstance(error, OpenEnvError):
            place = f"({Path(frames[-1].filename).name}:{frames[-1].lineno})"
            message = f"{message} {place}" if message else place
        return cls(type(error).__name__, message)


class EpisodeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finished episode: the content of one JSON line.

    `reward` is the sum of the steps' rewards (a step without one adds 0).
    `truncated` means that `--max-steps` ended it, `done` that the environment did;
    a failed episode has neither and carries `error`. `duration_s` is in seconds.
    """

    episode: int
    seed: int
    session: int
    steps: int
    reward: float
    done: bool
    truncated: bool
    duration_s: float
    error: EpisodeError | None = None


@dataclass(slots=True)
class Tally:
    """The sums of a rollout, readable at any moment of it.

    `refused` counts sessions that could not be opened, by exception class; `examples`
    keeps the first message of each class of failure.
    """

    planned: int
    finished: int = 0
    failed: int = 0
    truncated: int = 0
    steps: int = 0
    reward: float = 0.0
    open_sessions: int = 0
    peak_sessions: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    _began_s: float | None = None
    _ended_s: float | None = None

    def begin(self) -> None:
        """Start the clock: all sessions are open, the first episode starts."""
        self._began_s = time.monotonic()

    def end(self) -> None:
        """Stop the clock: the last episode has ended."""
        self._ended_s = time.monotonic()

    def add(self, record: EpisodeRecord) -> None:
        """Count one ended episode; its steps were counted as they happened."""
        self.finished += 1
        self.truncated += record.truncated
        if record.error is None:
            self.reward += record.reward
        else:
            self.failed += 1
            self.reasons[record.error.type] += 1
            self.examples.setdefault(record.error.type, record.error.message)

    def refuse(self, error: Exception) -> None:
        """Count a session that could not be opened."""
        reason = type(error).__name__
        self.refused[reason] += 1
        self.examples.setdefault(reason, str(error))

    def session_opened(self) -> None:
        """Count a session that is open now."""
        self.open_sessions += 1
        self.peak_sessions = max(self.peak_sessions, self.open_sessions)

    def session_closed(self) -> None:
        """Count a session that is open no more."""
        self.open_sessions -= 1

    @property
    def playing_s(self) -> float:
        """Seconds from the first episode's start to the last one's end, or to now."""
        if self._began_s is None:
            return 0.0
        ended_s = time.monotonic() if self._ended_s is None else self._ended_s
        return ended_s - self._began_s

    @property
    def succeeded(self) -> int:
        """Episodes that ended without an error."""
        return self.finished - self.failed

    @property
    def not_run(self) -> int:
        """Episodes that never ended: not started, or cut off by an interrupt."""
        return self.planned - self.finished

    @property
    def mean_reward(self) -> float | None:
        """Mean reward of the successful episodes; None when there is none."""
        return self.reward / self.succeeded if self.succeeded else None


def _tell_fields(error: ValidationFailed) -> str:
    """Say which fields the server refused, and why (pydantic's `loc` and `msg`)."""
    details = []
    for entry in error.errors:
        field = _spell(entry.get("loc") or ())
        reason = str(entry.get("msg", entry.get("type", "invalid")))
        details.append(f"{field}: {reason}" if field else reason)
    return f"{error.message}: {'; '.join(details)}"


def _spell(location: Iterable[object]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".")
