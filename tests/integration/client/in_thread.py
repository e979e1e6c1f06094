"""The scripted server in a thread of its own, for callers that block."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager

from tests.integration.client.scripted import scripted


@contextmanager
def scripted_in_thread(port: int = 0, **settings):
    """Serve in a thread until the block ends."""
    ready: list = []
    started = threading.Event()

    async def serve() -> None:
        stop = asyncio.Event()
        async with scripted(port, **settings) as server:
            ready.extend((server, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="scripted")
    thread.start()
    assert started.wait(5)
    server, loop, stop = ready
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        assert not thread.is_alive()
