"""``POST /mcp`` and the WebSocket ``/mcp``: JSON-RPC about an environment's tools.

A POST uses the session that ``params.session_id`` names, else an environment of its
own.  A WebSocket is one session, as ``/ws`` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.responses import Response
from starlette.requests import Request  # noqa: TC002 - FastAPI reads the annotation
from starlette.websockets import WebSocket  # noqa: TC002 - likewise
from typing_extensions import override

from openenv.core.env_server import _mcp
from openenv.core.env_server._dispatch import Answer
from openenv.core.env_server._mcp import (
    Refusal,
    check_method,
    json_text,
    no_session,
    parse,
    session_to_close,
    success,
    unknown_session,
)
from openenv.core.env_server._routes.websocket import Connection
from openenv.core.env_server._wire_errors import InvalidJsonText, close_code, loads
from openenv.core.env_server.mcp_types import JsonRpcErrorCode, JsonRpcRequest
from openenv.errors import (
    EnvironmentFactoryError,
    SessionCapacityError,
    SessionNotFoundError,
)

if TYPE_CHECKING:
    from fastapi import FastAPI

    from openenv.core.env_server._hosted import Hosted
    from openenv.core.env_server._mcp_sessions import HeldSession
    from openenv.core.env_server._sessions import Session
    from openenv.core.env_server.http_server import HTTPEnvServer


def register_mcp_socket(app: FastAPI, server: HTTPEnvServer) -> None:
    """Add the WebSocket ``/mcp``."""

    async def mcp_websocket_endpoint(websocket: WebSocket) -> None:
        await _McpConnection(server, websocket).serve()

    app.add_api_websocket_route("/mcp", mcp_websocket_endpoint)


def register_mcp_route(app: FastAPI, server: HTTPEnvServer) -> None:
    """Add ``POST /mcp``."""

    async def mcp_endpoint(request: Request) -> Response:
        body = await _answer_body(server, await request.body())
        return Response(body, media_type="application/json")

    app.add_api_route(
        "/mcp",
        mcp_endpoint,
        methods=["POST"],
        response_model=dict[str, Any],
        summary="Mcp Endpoint",
        description="Answer a JSON-RPC request about the environment's tools.",
    )


async def _answer_body(server: HTTPEnvServer, body: bytes) -> bytes:
    try:
        return await _answer_request(server, parse(_object(body)))
    except Refusal as refusal:
        return json_text(refusal.response)


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = loads(body)
    except InvalidJsonText as error:
        raise Refusal(JsonRpcErrorCode.PARSE_ERROR) from error
    if not isinstance(data, dict):  # upstream tells no difference
        raise Refusal(JsonRpcErrorCode.PARSE_ERROR)
    return data


async def _answer_request(server: HTTPEnvServer, request: JsonRpcRequest) -> bytes:
    """Answer one request.

    Raises:
        Refusal: with the answer to send instead.
    """
    try:
        match request.method:
            case _mcp.SESSION_CREATE:
                session = await server.open_session()
                server.held_sessions.hold(session)
                return json_text(success(request, {"session_id": session.id}))
            case _mcp.SESSION_CLOSE:
                told = await server.held_sessions.close(session_to_close(request))
                return json_text(success(request, told))
            case _:
                return await _ask_environment(server, request)
    except SessionNotFoundError as error:
        raise unknown_session(request, error.session_id) from error
    except (SessionCapacityError, EnvironmentFactoryError) as error:
        raise no_session(error, request) from error


async def _ask_environment(server: HTTPEnvServer, request: JsonRpcRequest) -> bytes:
    check_method(request)  # before an environment is built for nothing
    rpc, data = server.tools_rpc, request.model_dump()

    def function(hosted: Hosted) -> bytes:
        return json_text(rpc.answer(hosted, data))

    async def coroutine(hosted: Hosted) -> bytes:
        return json_text(await rpc.answer_async(hosted, data))

    session_id = request.params.get("session_id")
    if session_id:
        held = server.held_sessions.find(str(session_id))
        body: bytes = await held.run(function, coroutine)
    else:
        body = await server.runtimes.current().one_shot(function, coroutine)
    return body


class _McpConnection(Connection):
    """One WebSocket ``/mcp``; errors are JSON-RPC's, too."""

    @override
    async def _answer(
        self, session: Session | HeldSession, message: str | bytes
    ) -> Answer:
        rpc = self._server.tools_rpc
        try:
            data = loads(message)
        except InvalidJsonText as error:
            text = f"Parse error: {error}"
            refusal = Refusal(JsonRpcErrorCode.PARSE_ERROR, text)
            return Answer(json_text(refusal.response), "mcp")

        def answer(hosted: Hosted) -> bytes:
            return json_text(rpc.answer(hosted, data))

        async def answer_async(hosted: Hosted) -> bytes:
            return json_text(await rpc.answer_async(hosted, data))

        return Answer(await session.run(answer, answer_async), "mcp")

    @override
    async def _refuse(self, error: Exception) -> None:
        if await self._send(json_text(no_session(error).response)):
            await self._close(close_code(error))
