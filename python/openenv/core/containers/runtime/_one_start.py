"""A provider runs one container or process at a time, whoever asks for it."""

from __future__ import annotations

from openenv.errors import ProviderError


class AlreadyRunning(ProviderError):  # noqa: N818 - STYLE 8: named by what happened
    """Report that a start was refused, and what runs was left as it is.

    It may be somebody else's: who hears this has nothing to stop.
    """
