"""Which session an HTTP request is of, and how a client comes to one.

::

    POST /reset                          one environment for this request alone
    POST /reset, X-OpenEnv-Session: new  begins a session; the answer names it in the
                                         same header and in a cookie
    any request with its name            the session's own environment

The name is the server's, hard to guess, and good for ``/ws?session_id=`` and for
``params.session_id`` of ``/mcp``, too. A session counts against the capacity, and ends
by ``openenv/session/close`` or when it was idle for too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from openenv.errors import SessionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fastapi import Request
    from fastapi.responses import Response

    from openenv.core.env_server._hosted import Hosted
    from openenv.core.env_server._mcp_sessions import HeldSession
    from openenv.core.env_server.http_server import HTTPEnvServer

HEADER: Final = "x-openenv-session"
COOKIE: Final = "openenv_session"
NEW: Final = "new"
_OK: Final = 200


@dataclass(slots=True)
class HttpSession:
    """What one request says about its session, and the session it gets.

    Attributes:
        name: the session's name, `NEW`, or empty for none.
        from_cookie: whether a cookie said it, which browsers keep for too long.
        held: the session, once it is found or begun.
        begun: whether this request began it.
    """

    name: str
    from_cookie: bool = False
    held: HeldSession | None = None
    begun: bool = False

    def undo(self, server: HTTPEnvServer) -> None:
        """End the session that this request began, as nobody will know of it."""
        if self.held is not None and self.begun:
            server.held_sessions.drop(self.held)
            self.held = None

    @classmethod
    def of(cls, request: Request) -> HttpSession:
        """Read a request; the header comes before the cookie."""
        name = request.headers.get(HEADER, "").strip()
        if name:
            return cls(NEW if name.lower() == NEW else name)
        return cls(request.cookies.get(COOKIE, ""), from_cookie=True)

    async def find(self, server: HTTPEnvServer, op: str) -> None:
        """Find the session, or begin it where ``op`` is a reset that asks for it.

        Raises:
            SessionNotFoundError: there is none of that name.
            SessionCapacityError: no slot is free for a new one.
            EnvironmentFactoryError: the factory raised.
        """
        if not self.name:
            return
        try:
            self.held = server.held_sessions.find(self.name)
        except SessionNotFoundError:
            wanted = self.name == NEW or self.from_cookie
            if not (wanted and op == "reset"):
                raise _no_session(self.name) from None
            session = await server.open_session()
            self.held = server.held_sessions.hold(session)
            self.begun = True

    async def run(
        self,
        server: HTTPEnvServer,
        function: Callable[[Hosted], Any],
        coroutine: Callable[[Hosted], Coroutine[Any, Any, Any]],
    ) -> Any:  # noqa: ANN401 - what the functions return
        """Use the session's environment, or one of this request alone."""
        if self.held is None:
            return await server.runtimes.current().one_shot(function, coroutine)
        return await self.held.run(function, coroutine)

    async def tell(
        self, server: HTTPEnvServer, request: Request, response: Response
    ) -> None:
        """Name the session in the response, if this request began it.

        A reset that failed, or whose client has left, begins nothing.
        """
        if self.held is None or not self.begun:
            return
        if response.status_code != _OK or await request.is_disconnected():
            self.undo(server)
            return
        name = self.held.session.id
        response.headers[HEADER] = name
        response.set_cookie(
            COOKIE,
            name,
            path=request.scope.get("root_path") or "/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )


def _no_session(name: str) -> SessionNotFoundError:
    hint = f"POST /reset with the header X-OpenEnv-Session: {NEW} begins one"
    if name == NEW:
        return SessionNotFoundError(name, f"There is no session yet; {hint}")
    return SessionNotFoundError(name, f"Unknown session; {hint}")
