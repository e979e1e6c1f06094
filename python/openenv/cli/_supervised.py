"""Serve by uvicorn's supervisors: several worker processes, or one that is reloaded.

The socket is bound here, before anything is told or started, so that a port that is
taken is one sentence, and port 0 can be told. Workers make their application themselves
(`make_application`).
"""

from __future__ import annotations

import contextlib
import inspect
import signal
import socket
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from typing_extensions import override
from uvicorn.supervisors import ChangeReload, Multiprocess

from openenv.cli._console import CommandFailed
from openenv.cli._served import STARTUP_FAILURE
from openenv.core.env_server._serve import (
    BACKLOG,
    MAX_MESSAGE_BYTES,
    PING_INTERVAL_S,
    PING_TIMEOUT_S,
)
from openenv.core.env_server._sessions import STOP_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

_FACTORY: Final = "openenv.cli._served:make_application"


@contextlib.contextmanager
def bound_port(host: str, port: int) -> Iterator[socket.socket]:
    """Listen on a TCP port; 0 takes a free one.

    Raises:
        OSError: the address cannot be bound.
    """
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.create_server(address, family=family, backlog=BACKLOG) as listener:
        listener.set_inheritable(True)
        yield listener


@contextlib.contextmanager
def bound_path(path: Path) -> Iterator[socket.socket]:
    """Listen on a Unix socket, and remove its file in the end, also by SIGTERM.

    The file of a socket that nobody listens on any more is replaced.

    Raises:
        CommandFailed: something else is there, or somebody listens there.
        OSError: the file cannot be made.
    """
    if sys.platform == "win32":
        raise CommandFailed("--uds needs Unix sockets, which Python has not on Windows")
    _make_room(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            path.chmod(0o666)  # as uvicorn: who reaches the folder may connect
            listener.listen(BACKLOG)
            listener.set_inheritable(True)
            yield listener
        finally:
            path.unlink(missing_ok=True)


def run_supervised(
    listener: socket.socket, application: object, workers: int, watched: str | None
) -> None:
    """Serve on a bound socket until SIGINT or SIGTERM.

    Args:
        listener: the socket; closed by the caller.
        application: served where this process serves itself.
        workers: processes; more than one make their application themselves.
        watched: folder whose changes start a new process; None: none is started.

    Raises:
        CommandFailed: a worker could not start; its output says why.
        KeyboardInterrupt: it was SIGINT.
    """
    if workers > 1:
        _run_workers(listener, workers)
    elif watched is not None:
        config = _config(_FACTORY, factory=True, reload=True, reload_dirs=[watched])
        target = uvicorn.Server(config).run
        _Reloader(config, target=target, sockets=[listener]).run()
    else:
        uvicorn.Server(_config(application)).run(sockets=[listener])


def _run_workers(listener: socket.socket, workers: int) -> None:
    config = _config(_FACTORY, factory=True, workers=workers)
    # Older supervisors are told what their workers run.
    wanted = "target" in inspect.signature(Multiprocess).parameters
    target = {"target": uvicorn.Server(config).run} if wanted else {}
    hangup = getattr(signal, "SIGHUP", None)
    before = hangup and signal.getsignal(hangup)
    supervisor = _Workers(config, sockets=[listener], **target)
    if hangup is not None:  # the supervisor would start its workers anew
        signal.signal(hangup, before)
    supervisor.run()
    if any(each.process.exitcode == STARTUP_FAILURE for each in supervisor.processes):
        raise CommandFailed("a worker could not start; its output above says why")


def _config(application: Any, **settings: Any) -> uvicorn.Config:  # noqa: ANN401
    return uvicorn.Config(
        application,
        http="httptools",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_TIMEOUT_S,
        ws_per_message_deflate=False,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=int(STOP_TIMEOUT_S),
        **settings,
    )


class _Workers(Multiprocess):
    """Tells that it was Ctrl-C."""

    @override
    def run(self) -> None:
        self._interrupted = False
        super().run()
        if self._interrupted:
            raise KeyboardInterrupt

    @override
    def handle_int(self) -> None:
        self._interrupted = True
        super().handle_int()


class _Reloader(ChangeReload):  # type: ignore[valid-type, misc]  # one of two
    """Tells that it was Ctrl-C."""

    @override
    def run(self) -> None:
        self._interrupted = False
        super().run()
        if self._interrupted:
            raise KeyboardInterrupt

    @override
    def signal_handler(self, sig: int, frame: FrameType | None) -> None:
        self._interrupted = sig == signal.SIGINT
        super().signal_handler(sig, frame)


def _make_room(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        message = f"cannot listen on {path}: it exists and is no socket"
        raise CommandFailed(message)
    with socket.socket(socket.AF_UNIX) as asker:
        asker.settimeout(1.0)
        try:
            asker.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError:
            pass  # it is there, and cannot be asked
    message = f"cannot listen on {path}: somebody listens there"
    raise CommandFailed(message)
