"""When is a server ready: `/health` says so and `/ws` opens a session.

Both are asked directly; proxies of the environment are never used.
"""

from __future__ import annotations

import http.client
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import CapacityReached, ConnectFailed, ProviderError, RequestTimeout

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

POLL_INTERVAL_S: Final = 0.05
# The interval grows to this, so that fifty who wait leave an engine time to start.
_LONGEST_INTERVAL_S: Final = 0.4
_GROWTH: Final = 1.2
_HEALTH_TIMEOUT_S: Final = 2.0  # a server that is loading may accept and not answer
_CONNECT_TIMEOUT_S: Final = 10.0
_TELLING_S: Final = 1.0  # what a busy server may need for an answer
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
        interrupted: Ends the waiting when set.

    Raises:
        ProviderError: It was interrupted, or what `check` raises.
        TimeoutError: The server was not ready in time; says what it answered last.
    """
    deadline = time.monotonic() + timeout_s
    interval_s = POLL_INTERVAL_S
    for ask in (_ask_health, _ask_websocket):
        complaint = None
        while True:
            check()
            left_s = deadline - time.monotonic()
            told = ask(base_url, max(left_s, POLL_INTERVAL_S))
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


def _ask_health(base_url: str, timeout_s: float) -> str | None:
    parts = urlsplit(base_url)
    secure = parts.scheme == "https"
    connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = connect(
        parts.hostname or "", parts.port, timeout=min(timeout_s, _HEALTH_TIMEOUT_S)
    )
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/health")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as exc:
        return f"/health did not answer: {str(exc) or type(exc).__name__}"
    finally:
        connection.close()
    return None if status == _OK else f"/health answered {status}"


def _ask_websocket(base_url: str, timeout_s: float) -> str | None:
    # A whole client, because closing gives the session back before the socket ends: a
    # server with a single session has it free again for the client that comes next.
    client = GenericEnvClient(
        base_url,
        connect_timeout_s=min(timeout_s, _CONNECT_TIMEOUT_S),
        mode="simulation",
    ).sync()
    try:
        with suppress(CapacityReached), client:
            return None
    except (ConnectFailed, RequestTimeout) as exc:
        return f"/ws did not open: {exc}"
    return None  # all sessions are taken: it serves them
