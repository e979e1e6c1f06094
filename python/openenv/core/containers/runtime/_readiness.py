"""When is a server ready: `/health` says so and `/ws` opens a session.

Both are asked directly; proxies of the environment are never used. The questions are
coroutines on the process's I/O loop, so that time or an interruption ends one at once,
whatever the server does.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from openenv.core._client.http import first_line, status_of
from openenv.core._client.io_thread import run_in_background
from openenv.core._client.settings import checked_wait_s
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import CapacityReached, ConnectFailed, ProviderError, RequestTimeout

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Coroutine

POLL_INTERVAL_S: Final = 0.05
# The interval grows to this, so that fifty who wait leave an engine time to start.
_LONGEST_INTERVAL_S: Final = 0.4
_GROWTH: Final = 1.2
_HEALTH_TIMEOUT_S: Final = 2.0  # a server that is loading may accept and not answer
_CONNECT_TIMEOUT_S: Final = 10.0
_TELLING_S: Final = 1.0  # what a busy server may need for an answer
_SHOWN_BYTES: Final = 40
_OK: Final = 200


def wait_until_ready(
    base_url: str,
    timeout_s: float,
    check: Callable[[], None],
    interrupted: threading.Event,
) -> None:
    """Ask until the server is ready.

    Args:
        base_url: The server's.
        timeout_s: Seconds to ask at most.
        check: Called again and again; raises when asking has become pointless.
        interrupted: Ends the waiting when set, also in the middle of a question.

    Raises:
        ProviderError: It was interrupted, or what `check` raises.
        TimeoutError: The server was not ready in time; says what it answered last.
        TypeError: `timeout_s` is no number; `ValueError` if it is negative or NaN.
    """
    deadline = time.monotonic() + checked_wait_s("timeout_s", timeout_s)
    interval_s = POLL_INTERVAL_S
    for ask in (_ask_health, _ask_websocket):
        complaint = None
        while True:
            check()
            left_s = deadline - time.monotonic()
            question = ask(base_url, max(left_s, POLL_INTERVAL_S))
            told = run_in_background(_unless(interrupted, question))
            if told is None:
                break
            # What was cut short by the deadline says less than what came before it.
            if complaint is None or left_s >= _TELLING_S:
                complaint = told
            if left_s <= 0:
                check()
                raise TimeoutError(complaint)
            if interrupted.wait(interval_s):
                message = "the start was interrupted"
                raise ProviderError(message)
            interval_s = min(interval_s * _GROWTH, _LONGEST_INTERVAL_S)


async def _unless(
    interrupted: threading.Event, question: Coroutine[None, None, str | None]
) -> str | None:
    """Return a question's complaint, which an interruption is as well."""
    asking = asyncio.ensure_future(question)
    try:
        while not asking.done() and not interrupted.is_set():
            await asyncio.wait((asking,), timeout=POLL_INTERVAL_S)
    finally:
        asking.cancel()
        await asyncio.wait((asking,))
    return "interrupted" if asking.cancelled() else asking.result()


async def _ask_health(base_url: str, timeout_s: float) -> str | None:
    try:
        async with asyncio.timeout(min(timeout_s, _HEALTH_TIMEOUT_S)):
            settings = _client(base_url)._settings  # noqa: SLF001 - ours
            line = await first_line(settings, "/health")
    except TimeoutError as exc:
        return f"/health did not answer: {str(exc) or 'timed out'}"
    except OSError as exc:
        return f"/health did not answer: {str(exc) or type(exc).__name__}"
    if not line:
        return "/health did not answer: connection closed"
    status = status_of(line)
    if status is None:
        return f"/health answered no HTTP: {line[:_SHOWN_BYTES]!r}"
    return None if status == _OK else f"/health answered {status}"


async def _ask_websocket(base_url: str, timeout_s: float) -> str | None:
    # A whole client, because closing gives the session back before the socket ends: a
    # server with a single session has it free again for the client that comes next.
    client = _client(base_url, connect_timeout_s=min(timeout_s, _CONNECT_TIMEOUT_S))
    try:
        with suppress(CapacityReached):
            async with client:
                return None
    except (ConnectFailed, RequestTimeout) as exc:
        return f"/ws did not open: {exc}"
    return None  # all sessions are taken: it serves them


def _client(base_url: str, connect_timeout_s: float | None = None) -> GenericEnvClient:
    return GenericEnvClient(base_url, connect_timeout_s, mode="simulation", proxy=None)
