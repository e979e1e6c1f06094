"""A socket that is not the client's own: what a caller put into ``_ws``.

It has ``send``, ``recv`` and ``close``, as a connection of ``websockets`` or a mock.
It belongs to the event loop that ran when it was put there; one that came while none
ran belongs to all. Whatever it raises becomes an error of ours, and no wait for it is
without bound.
"""

# ruff: noqa: ANN401 - it may be anything

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Final, TypeVar

from openenv.core._client.dual import running_loop
from openenv.core._client.home import hand_over
from openenv.core._client.io_thread import is_alive, keep_parents
from openenv.core._client.per_loop import PerLoop
from openenv.errors import (
    ConnectionClosed,
    OpenEnvError,
    RemoteProtocolError,
    RequestTimeout,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_PATIENCE_S: Final = 1.0  # the same as for a connection of the client's own
_GOING_AWAY: Final = 1001
_LOOP_ENDED: Final = "the event loop that the socket in _ws belonged to has ended"
_SHOWN: Final = 100  # characters of a message that is none

_ResultT = TypeVar("_ResultT")


class Outside:
    """Speak to one such socket.

    Args:
        socket: What was put into ``_ws``.
    """

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.owed = 0
        """How many messages went out, or may have, whose answers were not received."""
        self.was_used = self.was_dropped = self.ended = False
        self._loop = running_loop()
        self._pid = os.getpid()
        self._turns = PerLoop(lambda _: asyncio.Lock())

    @property
    def turn(self) -> asyncio.Lock:
        """Return the lock that keeps the calls of the running loop one at a time."""
        return self._turns.of(asyncio.get_running_loop())

    @property
    def is_stranded(self) -> bool:
        """Tell whether its event loop has ended, or is another process's."""
        if self._loop is None:
            return self._pid != os.getpid()
        return not is_alive(self._loop, self._pid)

    @property
    def blocked_loop(self) -> asyncio.AbstractEventLoop | None:
        """Return its loop if that runs in this thread, where blocking stops it."""
        return self._loop if self._loop is running_loop() else None

    async def run(
        self, method: Callable[[], Coroutine[Any, Any, _ResultT]]
    ) -> _ResultT:
        """Run a coroutine method on its loop.

        Raises:
            ConnectionClosed: That loop has ended, or is another process's.
        """
        if self.is_stranded:
            raise ConnectionClosed(_GOING_AWAY, _LOOP_ENDED)
        if self._loop is None or self._loop is running_loop():
            return await method()
        return await hand_over(self._loop, method())

    async def send(self, text: str, timeout_s: float | None) -> None:
        """Send a message.

        Raises:
            RequestTimeout: It was not taken in time.
            ConnectionClosed: The socket failed.
        """
        self.was_used = True
        self.owed += 1  # already: the bytes may leave before this is cancelled
        await self._bounded("send", self.socket.send, timeout_s, text)

    async def recv(self, timeout_s: float | None) -> dict[str, Any]:
        """Return the next message.

        Raises:
            RequestTimeout: None came in time.
            ConnectionClosed: The socket failed.
            RemoteProtocolError: What came is no message.
        """
        text = await self._bounded("receive", self.socket.recv, timeout_s)
        message = _message(text)
        self.owed = max(0, self.owed - 1)
        return message

    async def close(self) -> None:
        """Say goodbye and close it; what takes longer goes on in the background."""
        await asyncio.wait({_in_background(self._end())}, timeout=_PATIENCE_S)

    def close_soon(self) -> None:
        """Close it in the background, without a goodbye that could not be read."""
        if self._pid != os.getpid():
            keep_parents(self.socket)
        elif not self.is_stranded and self._loop in {None, running_loop()}:
            _in_background(self._close_socket())

    async def _end(self) -> None:
        goodbye = json.dumps({"type": "close"})
        with contextlib.suppress(OpenEnvError):  # it may be gone already
            await self._bounded("close", self.socket.send, _PATIENCE_S, goodbye)
        await self._close_socket()

    async def _close_socket(self) -> None:
        with contextlib.suppress(OpenEnvError):
            await self._bounded("close", self.socket.close, None)

    async def _bounded(
        self,
        what: str,
        method: Callable[..., Awaitable[Any]],
        timeout_s: float | None,
        *args: object,
    ) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                return await method(*args)
        except TimeoutError as exc:
            raise RequestTimeout(what, timeout_s or 0.0) from exc
        except Exception as exc:  # foreign code
            code = getattr(getattr(exc, "rcvd", None), "code", 1006)
            raise ConnectionClosed(code, f"the socket in _ws failed: {exc}") from exc


def _in_background(coroutine: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
    task = asyncio.ensure_future(coroutine)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


def _message(text: Any) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except (TypeError, ValueError, RecursionError) as exc:
        raise _no_message(text) from exc
    # An error's data is read here, an answer's by the client's hooks.
    if not isinstance(message, dict) or (
        message.get("type") == "error"
        and not isinstance(message.get("data") or {}, dict)
    ):
        raise _no_message(text)
    return message


def _no_message(text: Any) -> RemoteProtocolError:
    return RemoteProtocolError(f"no message in the socket in _ws: {text!r:.{_SHOWN}}")


_running: Final[set[asyncio.Future[None]]] = set()
