"""``POST /reset``, ``POST /step``, ``GET /state``: one environment a request.

As upstream each request builds an environment, uses it once and closes it; it does
not count against the sessions.  Nothing of it runs on the I/O loop.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastapi import Body, FastAPI, HTTPException
from fastapi.responses import Response

from openenv import _rust
from openenv.core.env_server import _boundary
from openenv.core.env_server._codec import observation_parts
from openenv.core.env_server._dispatch import (
    Plan,
    call_planned,
    reset_plan,
    state_plan,
    step_plan,
)
from openenv.core.env_server._wire_errors import InvalidMessage, error_data
from openenv.core.env_server.types import (
    EnvironmentMetadata,
    ResetRequest,
    ResetResponse,
    StepRequest,
    StepResponse,
)
from openenv.errors import EncodeError, EnvironmentFactoryError, EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Callable

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
        request: ResetRequest = Body(default_factory=ResetRequest),  # noqa: B008 - FastAPI's way
    ) -> Response:
        keywords = request.model_dump(exclude_unset=True)
        return await _respond(
            server, lambda hosted: reset_plan(hosted, keywords), encode
        )

    async def step(request: StepRequest) -> Response:
        keywords = request.model_dump(exclude_unset=True, exclude={"action"})

        def plan(hosted: Hosted) -> Plan:
            return step_plan(hosted, _action(server, request.action), keywords)

        return await _respond(server, plan, encode)

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


async def read_state(server: HTTPEnvServer) -> Response:
    """Answer with the state of a fresh environment in the form of ``state_cls``."""
    return await _respond(server, state_plan, server.state_json)


async def read_metadata(server: HTTPEnvServer) -> Response:
    """Answer with a fresh environment's metadata."""

    def plan(hosted: Hosted) -> Plan:
        call = hosted.environment.get_metadata
        return Plan("metadata", call, awaited=False, ignored=[])

    return await _respond(server, plan, _metadata_json)


async def _respond(
    server: HTTPEnvServer,
    plan: Callable[[Hosted], Plan],
    encode: Callable[[Any], bytes],
) -> Response:
    """Build an environment, make the planned call, encode its result there.

    Returns:
        The result; 422 for an invalid action, 500 for a fault of the environment,
        both with a JSON body.

    Raises:
        HTTPException: the environment raised it.
    """

    def function(hosted: Hosted) -> bytes:
        return _boundary.call(encode, _boundary.call(plan(hosted).call))

    async def coroutine(hosted: Hosted) -> bytes:
        return _boundary.call(encode, await call_planned(hosted, plan(hosted)))

    try:
        body = await server.runtimes.current().one_shot(function, coroutine)
    except InvalidMessage as error:
        return _json(_rust.json_encode({"detail": error.errors}), 422)
    except (EnvironmentFault, EnvironmentFactoryError) as error:
        return _fault_response(error)
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
    return _json(_rust.json_encode({"detail": detail}), 500)


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
            return _rust.json_encode(body)
        except EncodeError as error:
            raise _Unencodable(error, reward, parts.done) from error

    return encode


def _metadata_json(metadata: Any) -> bytes:
    checked = EnvironmentMetadata.model_validate(metadata)
    return _rust.json_encode(checked.model_dump())


def _action(server: HTTPEnvServer, members: dict[str, Any]) -> Any:
    """Make the action, on the environment's thread."""
    try:
        return server.action_decoder.from_objects(members)
    except InvalidMessage:
        raise
    except BaseException as error:
        raise _boundary.fault(error) from error
