"""What `openenv serve` serves: a folder, an installed name or `module:attribute`.

Worker processes make their application themselves, from what `keep_target` put into the
environment of their parent.
"""

from __future__ import annotations

import hmac
import importlib
import json
import os
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from openenv.cli._console import WrongUse
from openenv.core._logs import show_warnings
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

_VARIABLE: Final = "OPENENV_SERVE_TARGET"
_MODULE_AND_ATTRIBUTE: Final = re.compile(r"[\w.]+:[\w.]+")
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
            InvalidRollout: the manifest names what is not there.
            WrongUse: the module or its attribute is not there.
        """
        if self.folder:
            folder = EnvironmentFolder(Path(self.folder), self.name, self.app)
            application = load_application(folder)
        else:
            application = _load_module(self.app)
        return application if self.api_key is None else Guard(application, self.api_key)


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


def make_application() -> Any:  # noqa: ANN401 - an ASGI app
    """Make the application of `keep_target`'s target, in a worker process."""
    show_warnings()
    return Target(**json.loads(os.environ[_VARIABLE])).load()  # noqa: TID251 - as above


def enable_web_page() -> None:
    """Ask the server for its web page, by upstream's variable."""
    os.environ["ENABLE_WEB_INTERFACE"] = "true"  # noqa: TID251 - read at import


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
