"""Types that clients hand out (upstream: core/client_types.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["ActT", "ObsT", "StateT", "StepResult"]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")


@dataclass
class StepResult(Generic[ObsT]):
    """Be what ``reset`` and ``step`` give back.

    Attributes:
        observation: What the environment shows.
        reward: The reward of this step; None where the environment gave none.
        done: Whether the episode is over.
        metadata: What the environment tells beside it; None where it tells nothing.

    Example:
        >>> result = StepResult(observation={"board": [0, 0]}, reward=1.0)
        >>> result.done
        False
    """

    observation: ObsT
    reward: float | None = None
    done: bool = False
    metadata: dict[str, Any] | None = None
