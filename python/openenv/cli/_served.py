"""What `openenv serve` serves: a folder, an installed name or `module:attribute`.

Worker processes make their application themselves, from what `keep_target` put into the
environment of their parent.
"""

from __future__ import annotations

import hmac
import importlib
import inspect
import json
import logging
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from openenv.cli._console import CommandFailed, WrongUse, show_error
from openenv.core._logs import show_warnings
from openenv.errors import OpenEnvError
from openenv.rollout.environment import (
    EnvironmentFolder,
    find_environment,
    load_application,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

STARTUP_FAILURE: Final = 3
"""Exit code of a worker that cannot serve: uvicorn's supervisor gives up."""

_VARIABLE: Final = "OPENENV_SERVE_TARGET"
_MODULE_AND_ATTRIBUTE: Final = re.compile(r"[\w.]+:[\w.]+")
_IMPORTLIB: Final = Path(importlib.__file__).parent
# What the application may take to end when the supervisor is gone: more than uvicorn's
# graceful shutdown of 10 s.
_GRACE_S: Final = 15.0
_OPEN_PATHS: Final = frozenset({"/health"})


@dataclass(frozen=True, slots=True)
class Target:
    """What is served; `folder` is empty for a module that is on the path."""

    name: str
    folder: str
    app: str
    api_key: str | None = None

    @classmethod
    def find(cls, text: str, api_key: str | None) -> Self:
        """Find what a user names.

        Raises:
            InvalidRollout: there is no such environment.
        """
        if _MODULE_AND_ATTRIBUTE.fullmatch(text):
            return cls(text, "", text, api_key)
        found = find_environment(text)
        return cls(found.name, str(found.folder), found.app, api_key)

    def load(self) -> Any:  # noqa: ANN401 - an ASGI app of any framework
        """Import the application.

        Raises:
            CommandFailed: the application's code raised.
            InvalidRollout: the manifest names what is not there.
            WrongUse: the module or its attribute is not there.
        """
        try:
            application = self._import()
        except OpenEnvError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
            message = f"importing {self.app} of {self.name} failed: {_describe(error)}"
            raise CommandFailed(message) from None
        if not _takes_calls(application):
            message = (
                f"{self.app} is no ASGI application: such a one is called with scope, "
                "receive and send"
            )
            raise WrongUse(message)
        return application if self.api_key is None else Guard(application, self.api_key)

    def _import(self) -> Any:  # noqa: ANN401 - as above
        if not self.folder:
            return _load_module(self.app)
        return load_application(
            EnvironmentFolder(Path(self.folder), self.name, self.app)
        )


class Guard:
    """An ASGI app that asks for a key: `Authorization: Bearer KEY` or `X-API-Key`.

    Health stays open, since engines and load balancers ask it.
    """

    def __init__(self, app: Any, api_key: str) -> None:  # noqa: ANN401 - an ASGI app
        self._app = app
        self._key = api_key.encode()

    @property
    def state(self) -> Any:  # noqa: ANN401 - starlette's
        """The guarded app's state, where our server keeps its settings."""
        return self._app.state

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a call without the key with 401, and hand on all others."""
        free = scope["type"] == "lifespan" or scope.get("path") in _OPEN_PATHS
        if free or self._knows(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            # Before it is accepted: the peer sees the handshake refused.
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _refuse(send)

    def _knows(self, scope: Message) -> bool:
        given = dict(scope.get("headers", ()))
        scheme, _, token = given.get(b"authorization", b"").partition(b" ")
        keys = [given.get(b"x-api-key", b"")]
        if scheme.lower() == b"bearer":
            keys.append(token.strip())
        return any(hmac.compare_digest(key, self._key) for key in keys)


def keep_target(target: Target) -> None:
    """Put a target where worker processes find it."""
    os.environ[_VARIABLE] = json.dumps(asdict(target))  # noqa: TID251 - handed on


def hush_forced_exit() -> None:
    """Let a second Ctrl-C show no traceback of the lifespan that it cuts short."""
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: "CancelledError" not in record.getMessage()
    )


def end_by_hangup() -> None:
    """Take the end of the terminal (SIGHUP) for SIGTERM, unless `nohup` ignores it."""
    if sys.platform == "win32" or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def make_application() -> Any:  # noqa: ANN401 - an ASGI app
    """Make the application of `keep_target`'s target, in a worker process.

    Where that fails the process ends, with the code that supervisors know.
    """
    _end_with_parent()
    end_by_hangup()
    show_warnings()
    hush_forced_exit()
    target = Target(**json.loads(os.environ[_VARIABLE]))  # noqa: TID251 - as above
    try:
        return target.load()
    except OpenEnvError as error:
        show_error(error)
        sys.exit(STARTUP_FAILURE)


def _takes_calls(application: Any) -> bool:  # noqa: ANN401 - as above
    """Tell whether it can be called as ASGI 3 does; an unknown signature passes."""
    try:
        signature = inspect.signature(application)
    except (TypeError, ValueError):  # a builtin
        return not isinstance(application, type)
    if isinstance(application, type):  # ASGI 2, or the class instead of an instance
        return False
    try:
        signature.bind("scope", "receive", "send")
    except TypeError:
        return False
    return True


def _end_with_parent() -> None:
    """End this worker in order when its supervisor is gone, `kill -9` included."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()  # the end of a pipe that the parent alone holds
        signal.raise_signal(signal.SIGTERM)
        time.sleep(_GRACE_S)
        os._exit(1)

    threading.Thread(target=wait, name="openenv-lifeline", daemon=True).start()


def _load_module(spec: str) -> Any:  # noqa: ANN401 - an ASGI app
    module_name, _, attribute = spec.partition(":")
    # As `python -m` does.
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Any other missing module is one that the application's own code imports.
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        message = f"no application {spec}: there is no module {error.name}"
        raise WrongUse(message) from None
    for name in attribute.split("."):
        found = getattr(found, name, None)
    if not callable(found):
        message = f"no application {spec}: the module has no application {attribute!r}"
        raise WrongUse(message)
    return found


async def _refuse(send: Send) -> None:
    body = b'{"detail":"a key is needed: Authorization: Bearer KEY, or X-API-Key"}'
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _describe(error: BaseException) -> str:
    """Tell what foreign code raised, and the way there: a line a call."""
    calls = traceback.extract_tb(error.__traceback__)
    own = Path(__file__).parents[1]  # ours and importlib's tell nothing
    shown = [
        f"  {call.filename}:{call.lineno} in {call.name}: {call.line}"
        for call in calls
        if not call.filename.startswith(("<frozen ", str(own / "cli")))
        and Path(call.filename).parent not in (own / "rollout", _IMPORTLIB)
    ]
    what = traceback.format_exception_only(error)[-1].strip()
    return "\n".join([what, *shown])
