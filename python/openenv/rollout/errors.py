"""What can stop a rollout as a whole; one failed episode is a record, not an error."""

# ruff: noqa: N818 - STYLE 8: errors are named by what happened, not by a suffix

from __future__ import annotations

from openenv.errors import OpenEnvError, ProviderError

__all__ = [
    "InvalidRollout",
    "NotAnAction",
    "OutputFailed",
    "RolloutError",
    "ServerFailed",
    "TooFewOpenFiles",
]


class RolloutError(OpenEnvError):
    """Be the root of what stops a rollout."""


class InvalidRollout(RolloutError, ValueError):
    """Report what the caller asked for and cannot have: a name, a path, a policy."""


class NotAnAction(OpenEnvError, TypeError):
    """Report that a policy returned what no environment takes; its episode failed."""


class OutputFailed(RolloutError):
    """Report that a record could not be written; the file holds whole lines only."""


class TooFewOpenFiles(RolloutError):
    """Report that the hard limit of open files is below what the sessions need."""


class ServerFailed(RolloutError, ProviderError):
    """Report that the environment's server did not start or ended too early."""
