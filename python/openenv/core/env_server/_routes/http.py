"""``POST /reset``, ``POST /step``, ``GET /state``: of a session, or of one request.

Without a session each request, as upstream's, builds an environment, uses it once and
closes it; it does not count against the sessions.  See `_http_sessions` for the others.
Nothing of it runs on the I/O loop.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from fastapi import (
    Body,
    FastAPI,
    HTTPException,
    Request,
)
from fastapi.encoders import jsonable_encoder
from fastapi.exception_handlers import (
    request_validation_exception_handler as _FASTAPIS_HANDLER,  # noqa: N812
)
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response

from openenv.core._native import native
from openenv.core.env_server import _boundary
from openenv.core.env_server._codec import observation_parts
from openenv.core.env_server._dispatch import (
    Plan,
    call_planned,
    reset_plan,
    state_plan,
    step_plan,
)
from openenv.core.env_server._routes._http_sessions import HttpSession
from openenv.core.env_server._wire_errors import InvalidMessage, error_data
from openenv.core.env_server.types import (
    EnvironmentMetadata,
    ResetRequest,
    ResetResponse,
    StepRequest,
    StepResponse,
)
from openenv.errors import (
    EncodeError,
    EnvironmentFactoryError,
    EnvironmentFault,
    SessionCapacityError,
    SessionNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from openenv.core.env_server._hosted import Hosted
    from openenv.core.env_server.http_server import HTTPEnvServer

_log = logging.getLogger(__name__)

_RESPONSES: dict[int | str, dict[str, Any]] = {
    500: {"description": "The environment raised"},
}


def register_control_routes(app: FastAPI, server: HTTPEnvServer) -> None:
    """Add ``/reset`` and ``/step``."""
    encode = _observation_encoder(server)

    async def reset(
        http: Request,
        request: ResetRequest = Body(default_factory=ResetRequest),  # noqa: B008 - FastAPI's way
    ) -> Response:
        keywords = _given(request)

        def plan(hosted: Hosted) -> Plan:
            return reset_plan(hosted, keywords)

        return await _respond(server, http, "reset", plan, encode)

    async def step(http: Request, request: StepRequest) -> Response:
        keywords = _given(request)
        del keywords["action"]

        def plan(hosted: Hosted) -> Plan:
            return step_plan(hosted, _action(server, request.action), keywords)

        return await _respond(server, http, "step", plan, encode)

    if app.exception_handlers.get(RequestValidationError) is _FASTAPIS_HANDLER:
        app.add_exception_handler(RequestValidationError, _refuse_request)
    app.add_api_route(
        "/reset",
        reset,
        methods=["POST"],
        response_model=ResetResponse,
        tags=["Environment Control"],
        summary="Reset the environment",
        description="Start an episode and return its first observation.",
    )
    app.add_api_route(
        "/step",
        step,
        methods=["POST"],
        response_model=StepResponse,
        responses=_RESPONSES,
        tags=["Environment Control"],
        summary="Execute an action in the environment",
        description="Do an action and return what is seen then.",
    )


async def read_state(server: HTTPEnvServer, http: Request) -> Response:
    """Answer with the environment's state in the form of ``state_cls``."""
    return await _respond(server, http, "state", state_plan, server.state_json)


async def read_metadata(server: HTTPEnvServer, http: Request) -> Response:
    """Answer with the environment's metadata."""

    def plan(hosted: Hosted) -> Plan:
        call = hosted.environment.get_metadata
        return Plan("metadata", call, awaited=False, ignored=[])

    return await _respond(server, http, "metadata", plan, _metadata_json)


async def _respond(
    server: HTTPEnvServer,
    http: Request,
    op: str,
    plan: Callable[[Hosted], Plan],
    encode: Callable[[Any], bytes],
) -> Response:
    """Answer a request from its session's environment, or from one of its own."""
    # What an environment is called depends on no session.
    session = HttpSession("") if op == "metadata" else HttpSession.of(http)
    try:
        response = await _answer(server, session, op, plan, encode)
        await session.tell(server, http, response)
    except BaseException:  # the author's HTTPException, or the client has left
        session.undo(server)
        raise
    return response


async def _answer(
    server: HTTPEnvServer,
    session: HttpSession,
    op: str,
    plan: Callable[[Hosted], Plan],
    encode: Callable[[Any], bytes],
) -> Response:
    """Make the planned call and encode its result, both where the environment runs.

    Returns:
        The result; 404 for an unknown session, 422 for an invalid action, 500 for a
        fault of the environment, 503 when there is no slot for a session or hung
        requests hold all threads, all with a JSON body.

    Raises:
        HTTPException: the environment raised it.
    """

    def function(hosted: Hosted) -> bytes:
        return _boundary.call(encode, _boundary.call(plan(hosted).call))

    async def coroutine(hosted: Hosted) -> bytes:
        return _boundary.call(encode, await call_planned(hosted, plan(hosted)))

    try:
        await session.find(server, op)
        body = await session.run(server, function, coroutine)
    except InvalidMessage as error:
        return _invalid(error)
    except SessionNotFoundError as error:
        return _json(native.json_encode({"detail": error_data(error)}), 404)
    except SessionCapacityError as error:
        return _json(native.json_encode({"detail": error_data(error)}), 503)
    except (EnvironmentFault, EnvironmentFactoryError) as error:
        return _fault_response(error)
    if session.held is not None:
        session.held.step_count += op == "step"
    return _json(body, 200)


def _fault_response(error: EnvironmentFault | EnvironmentFactoryError) -> Response:
    """Answer 500; an HTTPException of the author's is raised instead."""
    cause = error.__cause__
    if isinstance(cause, HTTPException):
        raise cause
    detail = error_data(error)
    if isinstance(cause, _Unencodable):
        detail |= cause.kept
    else:
        _log.warning("%s", error, exc_info=cause)
    return _json(native.json_encode({"detail": detail}), 500)


def _given(request: BaseModel) -> dict[str, Any]:
    """Return the members that were sent; `model_dump` refuses deep ones."""
    return {k: v for k, v in request if k in request.model_fields_set}


async def _refuse_request(_request: Request, error: Exception) -> Response:
    """Answer 422 as FastAPI does, also where its JSON has no word for the input."""
    errors: list[Any] = list(cast("RequestValidationError", error).errors())
    try:
        told = _boundary.call(jsonable_encoder, errors)
    except EnvironmentFault:  # too deep, or bytes that are no text
        return _invalid(InvalidMessage(errors).without_values())
    return _invalid(InvalidMessage(told))


def _invalid(error: InvalidMessage) -> Response:
    try:
        body = _boundary.call(native.json_encode, {"detail": error.errors})
    except EnvironmentFault:
        body = native.json_encode({"detail": error.without_values().errors})
    return _json(body, 422)


def _json(body: bytes, status: int) -> Response:
    return Response(body, status, media_type="application/json")


class _Unencodable(Exception):  # noqa: N818 - named by what happened
    """An observation without a JSON form; ``kept`` is what can be told of it."""

    def __init__(self, error: EncodeError, reward: float | None, done: object) -> None:
        super().__init__(str(error))
        self.kept = {"reward": reward, "done": bool(done)}


def _observation_encoder(server: HTTPEnvServer) -> Callable[[Any], bytes]:
    def encode(result: Any) -> bytes:
        parts = observation_parts(result, dicts=server.dict_observations)
        reward = None if parts.reward is None else float(parts.reward)
        body = {
            "observation": parts.observation,
            "reward": reward,
            "done": parts.done,
            "metadata": parts.metadata,
        }
        try:
            return native.json_encode(body)
        except EncodeError as error:
            raise _Unencodable(error, reward, parts.done) from error

    return encode


def _metadata_json(metadata: Any) -> bytes:
    checked = EnvironmentMetadata.model_validate(metadata)
    return native.json_encode(checked.model_dump())


def _action(server: HTTPEnvServer, members: dict[str, Any]) -> Any:
    """Make the action, on the environment's thread."""
    try:
        return server.action_decoder.from_objects(members)
    except InvalidMessage:
        raise
    except BaseException as error:
        raise _boundary.fault(error) from error
