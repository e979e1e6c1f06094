"""`openenv serve`: serve one environment in this process."""

from __future__ import annotations

from typing import Annotated

import typer

from openenv.cli._console import ExitCode, show_error, status
from openenv.errors import OpenEnvError
from openenv.rollout.environment import find_environment, load_application
from openenv.rollout.errors import InvalidRollout

MAX_PORT = 65535


def serve(
    environment: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="Folder with openenv.yaml, or a name: ./envs/NAME, ./NAME, or an "
            "installed package.",
        ),
    ] = ".",
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: every interface.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=MAX_PORT, help="0: a free one.")
    ] = 8000,
) -> None:
    """Serve an environment until Ctrl-C."""
    # Here, so that the other commands start without a web framework.
    from openenv.core.env_server import serve as serve_application  # noqa: PLC0415

    def tell(bound_host: str, bound_port: int) -> None:
        shown = f"[{bound_host}]" if ":" in bound_host else bound_host
        line = f"{environment} is served on http://{shown}:{bound_port}"
        status.print(line, markup=False, soft_wrap=True)

    try:
        application = load_application(find_environment(environment))
        serve_application(application, host=host, port=port, on_ready=tell)
    except InvalidRollout as error:
        show_error(error)
        raise typer.Exit(ExitCode.USAGE) from None
    except OpenEnvError as error:
        show_error(error)
        raise typer.Exit(ExitCode.FAILED) from None
    except OSError as error:
        status.print(f"Error: cannot listen on {host}:{port}: {error.strerror}")
        raise typer.Exit(ExitCode.FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
