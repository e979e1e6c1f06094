"""`openenv serve`: serve one environment."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openenv.cli._console import CommandFailed, WrongUse, say
from openenv.rollout.errors import InvalidRollout

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from types import FrameType
    from typing import Any

    from openenv.cli._served import Target

MAX_PORT = 65535
DEFAULT_PORT = 8000
_KEY_HEADER = "Authorization: Bearer <key>"
_WORD_VARIABLE = "OPENENV_SERVE_WORD"  # of the providers that run this command


def serve(  # noqa: PLR0913 - one parameter an option of the command
    environment: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="Folder with openenv.yaml; a name: ./envs/NAME, ./NAME, an installed "
            "package; or module:app.",
        ),
    ] = ".",
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: every interface.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            *("--port", "-p"),
            min=0,
            max=MAX_PORT,
            help="0: a free one.",
            show_default=str(DEFAULT_PORT),
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; each holds sessions of its own.")
    ] = 1,
    uds: Annotated[
        Path | None, typer.Option(help="Listen on this Unix socket instead.")
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Start again when the code changes.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Serve the web page, too.")
    ] = False,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="OPENENV_API_KEY",
            help="Refuse who does not send it (Authorization: Bearer KEY).",
        ),
    ] = None,
) -> None:
    """Serve an environment until Ctrl-C.

    Examples: openenv serve my_env --port 8001;
    openenv serve my_env.server.app:app --workers 4
    """
    # Here, so that the other commands start without what serves.
    from openenv.cli._served import (  # noqa: PLC0415
        Target,
        end_by_hangup,
        hush_forced_exit,
    )

    _refuse(api_key, workers, reload=reload, web=web)
    if uds is not None and port is not None:
        raise WrongUse("--uds listens on a Unix socket, which has no --port")
    port = DEFAULT_PORT if port is None else port
    # Whoever started this process knows the line by it; the environment's own servers,
    # which may print addresses, too, do not get it.
    word = os.environ.pop(_WORD_VARIABLE, None)  # noqa: TID251 - as above
    hush_forced_exit()
    end_by_hangup()
    try:
        target = Target.find(environment, api_key)
        application = target.load()
    except InvalidRollout as error:
        raise WrongUse(str(error)) from None
    try:
        if workers > 1 or uds is not None or reload:
            listening = _listening(host, port, uds)
            _serve_supervised(target, application, listening, workers, reload=reload)
        else:
            _serve_here(target, application, host, port, word)
    except OSError as error:
        where = uds or f"{host}:{port}"
        message = f"cannot listen on {where}: {error.strerror or error}"
        raise CommandFailed(message) from None


def _refuse(api_key: str | None, workers: int, *, reload: bool, web: bool) -> None:
    if reload and workers > 1:
        raise WrongUse("--reload serves with one process, not with --workers")
    if api_key is not None and not api_key.strip():
        raise WrongUse("--api-key is empty: nobody would be refused")
    if web:
        raise WrongUse("--web: this version has no web page yet")


def _serve_here(
    target: Target,
    application: Any,  # noqa: ANN401 - an ASGI app
    host: str,
    port: int,
    word: str | None,
) -> None:
    from openenv.core.env_server import serve as serve_application  # noqa: PLC0415

    def tell(bound_host: str, bound_port: int) -> None:
        url = _url(bound_host, bound_port)
        if word is not None:
            say(f"{word} {url}")
        _tell(target, url)

    with _interrupt_is_told():
        serve_application(application, host=host, port=port, on_ready=tell)


@contextmanager
def _interrupt_is_told() -> Iterator[None]:
    """Raise KeyboardInterrupt in the end where it was Ctrl-C: serving swallows it."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if len(seen) == 1:  # one more only makes uvicorn hurry
            signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if seen else before)
    if seen:
        raise KeyboardInterrupt


@contextmanager
def _listening(
    host: str, port: int, path: Path | None
) -> Iterator[tuple[socket.socket, str]]:
    """Bind what is asked for; gives the socket, and where it is for people."""
    from openenv.cli._supervised import bound_path, bound_port  # noqa: PLC0415 - uvicorn

    if path is not None:
        with bound_path(path) as listener:
            yield listener, str(path)
    else:
        with bound_port(host, port) as listener:
            yield listener, _url(host, listener.getsockname()[1])


def _serve_supervised(
    target: Target,
    application: Any,  # noqa: ANN401 - an ASGI app
    listening: AbstractContextManager[tuple[socket.socket, str]],
    workers: int,
    *,
    reload: bool,
) -> None:
    # As above.
    from openenv.cli._served import keep_target  # noqa: PLC0415
    from openenv.cli._supervised import run_supervised  # noqa: PLC0415

    keep_target(target)
    with listening as (listener, where):
        _tell(target, where)
        if workers > 1:
            told = f"{workers} processes: a session stays with its own, so use /ws"
            say(told)
        watched = (target.folder or str(Path.cwd())) if reload else None
        run_supervised(listener, application, workers, watched)


def _tell(target: Target, where: str) -> None:
    say(f"{target.name} is served on {where}")
    if "://" not in where:
        say("clients need a URL, such as that of a proxy in front of it; by hand:")
        key = "" if target.api_key is None else f"-H {_KEY_HEADER!r} "
        say(f"  curl --unix-socket {shlex.quote(where)} {key}http://localhost/metadata")
    elif target.api_key is not None:
        headers = '{"Authorization": "Bearer <key>"}'
        say(f'call it: GenericEnvClient("{where}", headers={headers})')
        say(f"play it: OPENENV_API_KEY='<key>' openenv rollout --base-url {where}")
    else:
        say(f'call it: GenericEnvClient("{where}")')
        say(f"check it: openenv validate --url {where}")
    sys.stderr.flush()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
