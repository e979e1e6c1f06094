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
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from typing_extensions import override
from uvicorn.supervisors import ChangeReload, Multiprocess

from openenv.cli._console import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

_APPLICATION: Final = "openenv.cli._served:make_application"
_BACKLOG: Final = 4096
_STARTUP_FAILURE: Final = 3  # uvicorn's exit code of a worker that cannot serve


def bind_port(host: str, port: int) -> socket.socket:
    """Listen on a TCP port; 0 takes a free one.

    Raises:
        OSError: the address cannot be bound.
    """
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    listener.set_inheritable(True)
    return listener


@contextlib.contextmanager
def bound_path(path: Path) -> Iterator[socket.socket]:
    """Listen on a Unix socket, and remove its file in the end.

    A socket's file that nobody listens on any more is replaced.

    Raises:
        CommandFailed: something else is there, or somebody listens there.
        OSError: the file cannot be made.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise CommandFailed("--uds needs Unix sockets, which this system has not")
    _make_room(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        try:
            path.chmod(0o666)  # as uvicorn: who may reach the folder may connect
            listener.listen(_BACKLOG)
            listener.set_inheritable(True)
            yield listener
        finally:
            path.unlink(missing_ok=True)


def run_supervised(
    listener: socket.socket, workers: int, reload_folder: str | None, **settings: Any
) -> bool:
    """Serve `make_application` on a bound socket until SIGINT or SIGTERM.

    Args:
        listener: the socket; closed by the caller.
        workers: processes.
        reload_folder: what is watched for changes; None: nothing is.
        settings: uvicorn's.

    Returns:
        Whether it was SIGINT (Ctrl-C) that ended it.

    Raises:
        CommandFailed: a worker could not start; its output says why.
    """
    config = uvicorn.Config(
        _APPLICATION,
        factory=True,
        workers=workers,
        reload=reload_folder is not None,
        reload_dirs=[reload_folder] if reload_folder else None,
        **settings,
    )
    if reload_folder is not None:
        server = uvicorn.Server(config)
        reloader = _Reloader(config, target=server.run, sockets=[listener])
        reloader.run()
        return reloader.interrupted
    supervisor = _Workers(config, sockets=[listener], **_target(config))
    supervisor.run()
    if any(each.process.exitcode == _STARTUP_FAILURE for each in supervisor.processes):
        raise CommandFailed("a worker could not start; its output above says why")
    return supervisor.interrupted


class _Workers(Multiprocess):
    """Knows whether Ctrl-C ended it."""

    interrupted = False

    @override
    def handle_int(self) -> None:
        self.interrupted = True
        super().handle_int()


class _Reloader(ChangeReload):
    """Knows whether Ctrl-C ended it."""

    interrupted = False

    @override
    def signal_handler(self, sig: int, frame: FrameType | None) -> None:
        self.interrupted = self.interrupted or sig == signal.SIGINT
        super().signal_handler(sig, frame)


def _target(config: uvicorn.Config) -> dict[str, Any]:
    # Until 0.40 the workers' function is the caller's, later the supervisor's.
    wanted = "target" in inspect.signature(Multiprocess).parameters
    return {"target": uvicorn.Server(config).run} if wanted else {}


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
