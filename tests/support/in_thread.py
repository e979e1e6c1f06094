"""A server of a test in a thread of its own, for callers that block."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager


@contextmanager
def in_thread(serving, name: str):
    """Enter an asynchronous context manager in a thread until the block ends."""
    ready: list = []
    started = threading.Event()

    async def serve() -> None:
        stop = asyncio.Event()
        async with serving as server:
            ready.extend((server, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name=name)
    thread.start()
    assert started.wait(5)
    server, loop, stop = ready
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        assert not thread.is_alive()
