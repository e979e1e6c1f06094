"""Run an app: uvicorn with the settings that sessions of environments need."""

# ruff: noqa: E402 - imports follow the check for the web framework

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from openenv.core._logs import show_warnings
from openenv.core.env_server._extras import require_core

require_core("uvicorn")

import uvicorn
from uvicorn.config import WS_PROTOCOLS

from openenv.core.env_server._sessions import STOP_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp

MAX_MESSAGE_BYTES: Final = 100 * 1024 * 1024  # what upstream's client takes
PING_INTERVAL_S: Final = 20.0  # keeps middleboxes open
PING_TIMEOUT_S: Final = 600.0  # a client whose loop is busy for minutes lives
# Linux gives a connection up after so long without an acknowledgement of data in
# flight *or* with a window of zero, which a busy client with a big answer on its way
# shows: so no less than the pings allow. A half-open peer has a ping in flight within
# PING_INTERVAL_S and is found this much later; the keepalive finds one where no pings
# are sent (HTTP) and where the system has no such timeout.
USER_TIMEOUT_S: Final = int(PING_TIMEOUT_S)
KEEPALIVE_S: Final = 60  # half of it idle, then three probes
FORCE_CHECK_S: Final = 0.1  # a second SIGINT ends the process at once
BACKLOG: Final = 4096  # a thousand clients connect at once


class Server:
    """An app on a socket of its own, bound at once.

    Args:
        app: the ASGI app.
        host: address or name to listen on.
        port: port; 0 takes a free one, see `port`.
        max_message_bytes: longest WebSocket message taken.
        log_level: uvicorn's log level; its lines go to the ``uvicorn`` loggers.
        on_ready: called with host and port, on the server's loop, when
            connections are served.

    Raises:
        OSError: the address cannot be bound.

    Example:
        >>> from fastapi import FastAPI
        >>> server = Server(FastAPI(), host="127.0.0.1", port=0)
        >>> server.port > 0
        True
        >>> server.socket.close()  # instead of server.run()
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        log_level: str | int | None = None,
        on_ready: Callable[[str, int], None] | None = None,
    ) -> None:
        self.socket: socket.socket = _bind(host, port)
        _tell(app, "max_message_bytes", max_message_bytes)
        self.host = host
        self.port: int = self.socket.getsockname()[1]
        self._on_ready = on_ready
        show_warnings()
        logging.getLogger("uvicorn.error").addFilter(_tell_bad_text_in_a_line)
        config = uvicorn.Config(
            app, log_level=log_level, **_settings(max_message_bytes)
        )
        self._server = _Uvicorn(config, self._ready)

    def run(self) -> None:
        """Serve until stopped by `stop`, SIGINT or SIGTERM.

        Raises the limit of open files first.  SIGTERM ends the process once
        sessions have ended; after SIGINT the call returns.
        """
        raise_file_limit()
        with contextlib.closing(self.socket), contextlib.suppress(KeyboardInterrupt):
            self._server.run(sockets=[self.socket])

    def stop(self) -> None:
        """Let `run` return soon; callable from any thread."""
        self._server.should_exit = True

    def _ready(self) -> None:
        if self._on_ready is not None:
            self._on_ready(self.host, self.port)


def serve(
    app: ASGIApp,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    log_level: str | int | None = None,
    on_ready: Callable[[str, int], None] | None = None,
) -> None:
    """Serve an app until SIGINT or SIGTERM; arguments and errors as `Server`."""
    Server(
        app,
        host,
        port,
        max_message_bytes=max_message_bytes,
        log_level=log_level,
        on_ready=on_ready,
    ).run()


def raise_file_limit() -> int | None:
    """Raise the soft limit of open files to the hard one.

    Returns:
        The limit in force, None where the system has none (Windows).
    """
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - POSIX only

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft  # macOS refuses "unlimited"
    return hard


class _Uvicorn(uvicorn.Server):
    """Tells when it serves."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn waits for its connections, then the app for what still runs.
        _tell(self.config.app, "stop_by_s", time.monotonic() + STOP_TIMEOUT_S)
        stopping = asyncio.ensure_future(super().shutdown(sockets))
        while not stopping.done() and not self.force_exit:
            await asyncio.wait({stopping}, timeout=FORCE_CHECK_S)
        if stopping.done():
            stopping.result()


def _tell(app: object, name: str, value: float) -> None:
    """Let an app of `create_app` know what it cannot know itself."""
    server = getattr(getattr(app, "state", None), "openenv_server", None)
    if server is not None:
        setattr(server, name, value)


def _tell_bad_text_in_a_line(record: logging.LogRecord) -> bool:
    """Drop the traceback of a message that is not UTF-8: no fault of the server's."""
    if record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError):
        record.exc_info = None
    return True


def _settings(max_message_bytes: int) -> Mapping[str, Any]:
    return {
        "loop": "auto",
        "http": "httptools",
        "ws": _websocket_protocol(),
        "ws_max_size": max_message_bytes,
        "ws_ping_interval": PING_INTERVAL_S,
        "ws_ping_timeout": PING_TIMEOUT_S,
        "ws_per_message_deflate": False,  # costs more than it saves on one machine
        "backlog": BACKLOG,
        "timeout_graceful_shutdown": int(STOP_TIMEOUT_S),
        "access_log": False,
        "log_config": None,
    }


def _websocket_protocol() -> str | type[asyncio.Protocol]:
    if "websockets-sansio" not in WS_PROTOCOLS:  # an older uvicorn
        return "auto"
    from openenv.core.env_server._guarded_websockets import (  # noqa: PLC0415 - as above
        GuardedWebSocketProtocol,
    )

    return GuardedWebSocketProtocol


def _bind(host: str, port: int) -> socket.socket:
    """Bind a socket whose connections notice a peer that is gone (TCP)."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _set_keepalive(listener)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _set_keepalive(listener: socket.socket) -> None:
    """Set what accepted connections inherit on Linux, elsewhere what there is."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": KEEPALIVE_S // 2,
        "TCP_KEEPINTVL": KEEPALIVE_S // 6,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": USER_TIMEOUT_S * 1000,
    }
    for name, value in options.items():
        option = getattr(socket, name, None)
        if option is not None:
            listener.setsockopt(socket.IPPROTO_TCP, option, value)
