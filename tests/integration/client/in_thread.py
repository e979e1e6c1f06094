"""The scripted server in a thread of its own, for callers that block."""

from __future__ import annotations

from tests.integration.client.scripted import scripted
from tests.support.in_thread import in_thread


def scripted_in_thread(port: int = 0, **settings):
    """Serve in a thread until the block ends."""
    return in_thread(scripted(port, **settings), "scripted")
