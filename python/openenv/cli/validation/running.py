"""Checks of a server that runs somewhere: its HTTP routes, then episodes."""

from __future__ import annotations

import http.client
import json
import re
import threading
import urllib.error
import urllib.request
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from openenv.cli.validation.checks import Check, Fault, NotApplicable, run_checks
from openenv.rollout.errors import InvalidRollout
from openenv.rollout.sampling import compile_sampler

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from openenv.cli.validation.checks import Listener

_GRACE_S: Final = 0.2
_MAX_BYTES: Final = 64 * 1024 * 1024  # a schema has kilobytes
_CONTROL: Final = ("/reset", "/step", "/state")


@dataclass
class Running:
    """A server by its URL, and what it told so far."""

    url: str
    seconds: float
    schema: dict[str, Any] = field(default_factory=dict)
    sample: Callable[[random.Random], Any] | None = None

    def read(self, path: str) -> dict[str, Any]:
        """Read a JSON object from a route.

        Raises:
            Fault: there is no such answer.
        """
        mend = "is this the URL of an OpenEnv server, without a path of its own?"
        try:
            answer = json.loads(self._ask(path))
        except urllib.error.HTTPError as error:
            raise Fault(f"GET {path} answers {error.code}", mend) from None
        except ValueError:
            raise Fault(f"GET {path} answers no JSON", mend) from None
        except http.client.HTTPException as error:
            why = f"{type(error).__name__}: {error}"
            raise Fault(f"GET {path} answers no HTTP: {why}", mend) from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise Fault(f"GET {self.url}{path} failed: {reason}", mend) from None
        if not isinstance(answer, dict):
            raise Fault(f"GET {path} answers no object", mend)
        return answer

    def draw(self, rng: random.Random) -> dict[str, Any]:
        """Draw an action of the server's schema."""
        return {} if self.sample is None else dict(self.sample(rng))

    def _ask(self, path: str) -> bytes:
        """Ask within one deadline; that of a socket begins anew with every byte."""
        asked: Future[bytes] = Future()

        def ask() -> None:
            try:
                asked.set_result(self._open(path))
            except Exception as error:  # noqa: BLE001 - raised below
                asked.set_exception(error)

        # A daemon, because what is not answered must not keep the process.
        threading.Thread(target=ask, daemon=True).start()
        # A little later than the socket, whose own words are better.
        if not wait([asked], self.seconds + _GRACE_S).done:
            message = f"not answered within {self.seconds:g} s"
            raise TimeoutError(message)
        return asked.result()

    def _open(self, path: str) -> bytes:
        # Here, because the client's machinery is not needed to name the checks.
        from openenv.core._client.proxy import is_loopback  # noqa: PLC0415

        # A proxy cannot reach this machine's own servers.
        is_own = is_loopback(urlsplit(self.url).hostname or "localhost")
        proxies: dict[str, str] | None = {} if is_own else None
        opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
        with opener.open(f"{self.url}{path}", timeout=self.seconds) as response:
            answer: bytes = response.read(_MAX_BYTES)
            return answer


def server_url(text: str) -> str:
    """Make an HTTP URL of what a user wrote: without a scheme it is http.

    Raises:
        ValueError: it names no server.
    """
    text = text.strip().rstrip("/")
    url = text if "://" in text else f"http://{text}"
    if not _is_server(url):
        message = f"{text!r} is no URL of a server, such as http://localhost:8000"
        raise ValueError(message)
    return url


def _is_server(url: str) -> bool:
    if not re.fullmatch(r"[!-~]+", url):  # blanks, and what a URL writes otherwise
        return False
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:  # the port is none, or the brackets
        return False


def check_running(running: Running, listener: Listener) -> None:
    """Run all checks of a running server."""
    # Here, because the client's machinery is not needed to ask one question.
    from openenv.cli.validation.contract import CONTRACT_CHECKS  # noqa: PLC0415
    from openenv.cli.validation.playing import Stage  # noqa: PLC0415 - as above
    from openenv.rollout.tools import calls_tools  # noqa: PLC0415 - as above

    passed = run_checks(HTTP_CHECKS, running, listener) | {"types.client"}
    stage = Stage(
        running.url,
        running.draw,
        calls_tools=calls_tools(running.schema.get("action", {})),
        seconds=running.seconds,
    )
    run_checks(CONTRACT_CHECKS, stage, listener, passed)


def _health(running: Running) -> None:
    status = running.read("/health").get("status")
    if status != "healthy":
        raise Fault(f"GET /health tells status {status!r}", "see the server's log")


def _metadata(running: Running) -> None:
    answer = running.read("/metadata")
    missing = [key for key in ("name", "description") if not answer.get(key)]
    if missing:
        raise Fault(
            f"GET /metadata tells no {' and no '.join(missing)}",
            "override get_metadata() of the environment",
        )


def _schema(running: Running) -> None:
    running.schema = running.read("/schema")
    for key in ("action", "observation", "state"):
        if not isinstance(running.schema.get(key), dict):
            raise Fault(f"GET /schema tells no {key}", "serve it with create_app")


def _routes(running: Running) -> None:
    answer = running.read("/openapi.json")
    if not isinstance(answer.get("info", {}).get("version"), str):
        raise Fault("GET /openapi.json tells no version", "serve it with create_app")
    paths = answer.get("paths", {})
    there = [path for path in _CONTROL if path in paths]
    if there and len(there) != len(_CONTROL):
        missing = ", ".join(path for path in _CONTROL if path not in paths)
        raise Fault(
            f"the server has {', '.join(there)} but not {missing}: neither simulation "
            "nor production mode",
            "serve it with create_app",
        )


def _drawable(running: Running) -> None:
    try:
        running.sample = compile_sampler(running.schema["action"])
    except InvalidRollout as error:
        why = f"no actions can be drawn: {error}"
        raise NotApplicable(why, blocks=True) from None


HTTP_CHECKS: Final[tuple[Check[Running], ...]] = (
    Check("http.health", _health),
    Check("http.metadata", _metadata, ("http.health",)),
    Check("http.schema", _schema, ("http.health",)),
    Check("http.routes", _routes, ("http.health",)),
    Check("types.drawable", _drawable, ("http.schema",)),
)
