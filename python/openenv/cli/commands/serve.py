"""`openenv serve`: serve one environment."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from openenv.cli._console import ExitCode, WrongUse, show_error, status
from openenv.errors import OpenEnvError
from openenv.rollout.errors import InvalidRollout

if TYPE_CHECKING:
    from openenv.cli._served import Target

MAX_PORT = 65535


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
        int, typer.Option("--port", "-p", min=0, max=MAX_PORT, help="0: a free one.")
    ] = 8000,
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
    from openenv.cli._served import Target, enable_web_page  # noqa: PLC0415

    if reload and workers > 1:
        raise WrongUse("--reload serves with one process, not with --workers")
    if web:
        enable_web_page()
    try:
        target = Target.find(environment, api_key)
        if workers > 1 or uds is not None or reload:
            _serve_by_uvicorn(target, host, port, workers, uds, reload=reload)
        else:
            _serve_here(target, host, port)
    except InvalidRollout as error:
        show_error(error)
        raise typer.Exit(ExitCode.USAGE) from None
    except WrongUse:
        raise
    except OpenEnvError as error:
        show_error(error)
        raise typer.Exit(ExitCode.FAILED) from None
    except OSError as error:
        where = uds or f"{host}:{port}"
        show_error(f"cannot listen on {where}: {error.strerror or error}")
        raise typer.Exit(ExitCode.FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _serve_here(target: Target, host: str, port: int) -> None:
    from openenv.core.env_server import serve as serve_application  # noqa: PLC0415

    def tell(bound_host: str, bound_port: int) -> None:
        _tell(target, _url(bound_host, bound_port))

    serve_application(target.load(), host=host, port=port, on_ready=tell)


def _serve_by_uvicorn(
    target: Target,
    host: str,
    port: int,
    workers: int,
    uds: Path | None,
    *,
    reload: bool,
) -> None:
    import uvicorn  # noqa: PLC0415 - the extra `core`

    from openenv.cli._served import keep_target  # noqa: PLC0415 - as above

    target.load()  # a mistake is told here, not by each worker
    keep_target(target)
    _tell(target, str(uds) if uds else _url(host, port))
    uvicorn.run(
        "openenv.cli._served:make_application",
        factory=True,
        host=host,
        port=port,
        uds=str(uds) if uds else None,
        workers=workers,
        reload=reload,
        reload_dirs=[target.folder] if target.folder else None,
        http="httptools",
        ws_max_size=100 * 1024 * 1024,
        ws_ping_interval=20.0,
        ws_ping_timeout=600.0,
        ws_per_message_deflate=False,
        access_log=False,
        log_level="warning",
    )


def _tell(target: Target, where: str) -> None:
    line = f"{target.name} is served on {where}"
    status.print(line, markup=False, soft_wrap=True)
    if "://" in where:
        call = (
            f'call it: GenericEnvClient("{where}"), or openenv validate --url {where}'
        )
        status.print(call, markup=False, soft_wrap=True)
    sys.stderr.flush()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
