"""Helpers under upstream's path (upstream: core/utils.py)."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from openenv.core._client.dial import to_ws_url

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["convert_to_ws_url", "run_async_safely"]

_ResultT = TypeVar("_ResultT")


def run_async_safely(coroutine: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Run a coroutine to its end from sync code, even inside a running loop.

    Blocks the calling thread, and with it a running loop of that thread.

    Args:
        coroutine: Run by `asyncio.run`, in a thread of its own where a loop runs.

    Returns:
        What the coroutine returns; what it raises is raised here.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return _run_in_thread(coroutine)


def convert_to_ws_url(url: str) -> str:
    """Give the WebSocket form of a base URL.

    Args:
        url: ``http``, ``https``, ``ws`` or ``wss`` in any case, or a bare host.

    Returns:
        The URL with ``ws`` or ``wss`` and without trailing slashes.

    Raises:
        ValueError: The URL is blank or its scheme another one.

    Example:
        >>> convert_to_ws_url("HTTPS://host/prefix/")
        'wss://host/prefix'
    """
    return to_ws_url(url).rstrip("/")


def _run_in_thread(coroutine: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    outcome: list[_ResultT] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(coroutine))
        except BaseException as exc:  # noqa: BLE001 - raised again by the caller
            failure.append(exc)

    thread = threading.Thread(target=run, name="openenv-run-async")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
