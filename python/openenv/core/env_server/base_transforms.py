"""Transforms of observations that need no environment (upstream's names)."""

from __future__ import annotations

from typing import TypeVar

from typing_extensions import override

from openenv.core.env_server.interfaces import Transform

ObsT = TypeVar("ObsT")


class CompositeTransform(Transform[ObsT]):
    """Apply several transforms one after the other.

    Args:
        transforms: applied in this order, each to the result of the one before.
    """

    def __init__(self, transforms: list[Transform[ObsT]]) -> None:
        self.transforms = transforms

    @override
    def __call__(self, observation: ObsT) -> ObsT:
        """Return the observation after all transforms."""
        for transform in self.transforms:
            observation = transform(observation)
        return observation


class NullTransform(Transform[ObsT]):
    """Leave observations as they are."""

    @override
    def __call__(self, observation: ObsT) -> ObsT:
        """Return ``observation`` itself."""
        return observation
