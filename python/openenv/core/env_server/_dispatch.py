"""From one message of a client to the bytes of its reply.

Runs where the environment runs, never on the I/O loop: decoding an action calls the
author's validators, encoding a reply his serializers.  The regular message goes the
short way (Rust splits the envelope, the action is decoded from the raw bytes); every
other is decided again as upstream does (`json.loads`, the message models).

    message --> request --> plan --> method called (or awaited) --> finish --> bytes
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from openenv._plain import restore
from openenv.core._native import native
from openenv.core.env_server import _boundary
from openenv.core.env_server._codec import (
    ActionDecoder,
    Parts,
    observation_parts,
    state_members,
)
from openenv.core.env_server._wire_errors import (
    InvalidJsonText,
    InvalidMessage,
    UnknownType,
    error_data,
    loads,
    too_deep,
    validation_errors,
)
from openenv.core.env_server.mcp_types import WSMCPMessage
from openenv.core.env_server.types import (
    WSCloseMessage,
    WSResetMessage,
    WSStateMessage,
    WSStepMessage,
)
from openenv.errors import EnvironmentFault, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from openenv.core.env_server._hosted import Hosted
    from openenv.core.env_server._mcp import ToolsRpc

_MODELS: dict[str, type[BaseModel]] = {
    "close": WSCloseMessage,
    "mcp": WSMCPMessage,
    "reset": WSResetMessage,
    "state": WSStateMessage,
    "step": WSStepMessage,
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Features:
    """What the replies of a connection heed.

    The first three are beyond upstream's bytes, and the peer asked for them
    (``OpenEnv-Features``).

    Attributes:
        nonfinite: tell which floats were written as null.
        ignored: tell which reset keys the environment does not take.
        exception: tell the type of an environment's exception.
        max_reply_bytes: longest reply the peer takes, None where it is unknown.
    """

    nonfinite: bool = False
    ignored: bool = False
    exception: bool = False
    max_reply_bytes: int | None = None

    @classmethod
    def parse(cls, header: str, max_reply_bytes: int | None = None) -> Features:
        """Read the header's comma-separated names; unknown ones are skipped."""
        names = {name.strip().lower() for name in header.split(",")}
        return cls(
            "nonfinite" in names,
            "ignored" in names,
            "exception" in names,
            max_reply_bytes,
        )


class Answer(NamedTuple):
    """The reply to one message.

    Attributes:
        data: the JSON text; None for ``close``, which ends the session.
        op: what succeeded (``reset``, ``step``, ``state``, ``mcp``), else "".
    """

    data: bytes | None
    op: str


class Plan(NamedTuple):
    """One call of the environment, ready to be made."""

    op: str
    call: Callable[[], Any]
    awaited: bool
    ignored: list[str]


class _Asked(NamedTuple):
    """A request that was understood, its ``data`` decoded."""

    op: str
    objects: Any


class Dispatcher:
    """Answers the messages of sessions of one app.

    Args:
        decoder: makes actions.
        rpc: answers ``mcp`` messages.
        dicts: whether plain dicts count as observations.
    """

    def __init__(self, decoder: ActionDecoder, rpc: ToolsRpc, *, dicts: bool) -> None:
        self._decoder = decoder
        self._rpc = rpc
        self._dicts = dicts

    def answer(
        self, hosted: Hosted, message: str | bytes, features: Features
    ) -> Answer:
        """Answer a message of a synchronous environment, on its thread."""
        plan = self._plan(hosted, message, features)
        if isinstance(plan, Answer):
            return plan
        try:
            result = _boundary.call(plan.call)
        except EnvironmentFault as fault:
            return failure(fault, features)
        return self._finish(plan, result, features)

    async def answer_async(
        self, hosted: Hosted, message: str | bytes, features: Features
    ) -> Answer:
        """Answer a message of an asynchronous environment, on its loop."""
        plan = self._plan(hosted, message, features)
        if isinstance(plan, Answer):
            return plan
        try:
            result = await call_planned(hosted, plan)
        except EnvironmentFault as fault:
            return failure(fault, features)
        return self._finish(plan, result, features)

    # -- before the call ---------------------------------------------------------

    def _plan(
        self, hosted: Hosted, message: str | bytes, features: Features
    ) -> Plan | Answer:
        try:
            request = native.split_request(message)
            if isinstance(request, native.Request):
                try:
                    return self._regular(hosted, request)
                except json.JSONDecodeError:
                    pass  # decided again below, with positions in the whole message
            return self._route(hosted, _decided_again(message))
        except (InvalidMessage, InvalidJsonText, UnknownType) as error:
            return _refusal(error, features)
        except RecursionError:  # what authors raise is an EnvironmentFault by now
            return _refusal(too_deep(), features)
        except EnvironmentFault as fault:
            return failure(fault, features)

    def _regular(self, hosted: Hosted, request: native.Request) -> Plan | Answer:
        raw = request.data
        if request.op == "step" and not request.marked and raw is not None:
            action = _decode(self._decoder.from_json, raw)
            return step_plan(hosted, action, {})
        objects = {} if raw is None else restore(native.json_decode(raw))
        return self._route(hosted, _Asked(request.op, objects))

    def _route(self, hosted: Hosted, asked: _Asked) -> Plan | Answer:
        match asked.op:
            case "reset":
                return reset_plan(hosted, asked.objects)
            case "step":
                action = _decode(self._decoder.from_objects, asked.objects)
                return step_plan(hosted, action, {})
            case "state":
                return state_plan(hosted)
            case "mcp":
                return rpc_plan(hosted, self._rpc, asked.objects)
            case _:
                return Answer(None, "")

    # -- after the call ----------------------------------------------------------

    def _finish(self, plan: Plan, result: Any, features: Features) -> Answer:
        if plan.op == "mcp":
            encode = partial(_fitting, features, native.mcp_reply)
            return Answer(self._rpc.encoded(result, encode), plan.op)
        try:
            if plan.op == "state":
                encode = partial(native.state_reply, nonfinite=features.nonfinite)
                members = _boundary.call(state_members, result)
                reply = _boundary.call(_fitting, features, encode, members)
                return Answer(reply, plan.op)
            parts = _boundary.call(observation_parts, result, dicts=self._dicts)
        except EnvironmentFault as fault:
            return failure(fault, features)
        extra = None
        if plan.ignored and features.ignored:
            extra = {"ignored": plan.ignored}
        return _observation(plan.op, parts, extra, features)


def reset_plan(hosted: Hosted, keywords: dict[str, Any]) -> Plan:
    """Plan a reset; keywords the method does not take are left out."""
    method, awaited = _boundary.call(hosted.method, "reset")
    taken, ignored = _boundary.call(hosted.accepted, "reset", keywords)
    return Plan("reset", lambda: method(**taken), awaited, ignored)


def step_plan(hosted: Hosted, action: Any, keywords: dict[str, Any]) -> Plan:
    """Plan a step; keywords the method does not take are left out."""
    method, awaited = _boundary.call(hosted.method, "step")
    if not keywords:
        return Plan("step", lambda: method(action), awaited, [])
    taken, ignored = _boundary.call(hosted.accepted, "step", keywords)
    return Plan("step", lambda: method(action, **taken), awaited, ignored)


def state_plan(hosted: Hosted) -> Plan:
    """Plan reading the state."""
    return Plan("state", lambda: hosted.environment.state, awaited=False, ignored=[])


def rpc_plan(hosted: Hosted, rpc: ToolsRpc, data: Any) -> Plan:
    """Plan the answer to a JSON-RPC request, which is an error where it fails."""
    if hosted.is_async:
        answer = partial(rpc.answer_async, hosted, data)
        return Plan("mcp", answer, awaited=True, ignored=[])
    return Plan("mcp", partial(rpc.answer, hosted, data), awaited=False, ignored=[])


async def call_planned(hosted: Hosted, plan: Plan) -> Any:
    """Make the call on the environment loop.

    A ``reset`` or ``step`` that is not the overridden one of the two may block, so
    it gets a helper thread, as upstream's; all else stays on the loop.

    Raises:
        EnvironmentFault: the environment raised.
    """
    if plan.awaited:
        return await _boundary.call_async(plan.call)
    if plan.op not in ("reset", "step"):
        return _boundary.call(plan.call)
    return await hosted.run_blocking(partial(_boundary.call, plan.call))


def failure(fault: EnvironmentFault, features: Features) -> Answer:
    """Make the reply to a request whose environment raised."""
    _log.warning("the environment raised %s", fault.exception, exc_info=fault.__cause__)
    return Answer(_fault_reply(fault, {}, features), "")


def _refusal(
    error: InvalidMessage | InvalidJsonText | UnknownType, features: Features
) -> Answer:
    """Make the reply to a message that was not understood.

    An invalid value is told back, unless it cannot be or makes the reply too long.
    """
    try:
        reply = _boundary.call(
            _fitting, features, native.error_reply, error_data(error)
        )
    except EnvironmentFault:
        if isinstance(error, InvalidMessage):
            error = error.without_values()
        reply = native.error_reply(error_data(error))
    return Answer(reply, "")


def _fitting(features: Features, encode: Callable[..., bytes], *parts: Any) -> bytes:
    """Encode a reply that the peer will take.

    Raises:
        LimitExceeded: it is too long: the peer would end the session over it.
    """
    reply = encode(*parts)
    limit = features.max_reply_bytes
    if limit is not None and len(reply) > limit:
        text = f"the reply has {len(reply)} bytes, more than max_message_bytes={limit}"
        raise LimitExceeded(text, len(reply), limit)
    return reply


def _observation(
    op: str, parts: Parts, extra: dict[str, Any] | None, features: Features
) -> Answer:
    """Encode the reply; one that cannot be sent still tells reward and done."""
    encode = partial(native.observation_reply, nonfinite=features.nonfinite, ext=extra)
    try:
        return Answer(_boundary.call(_fitting, features, encode, *parts), op)
    except EnvironmentFault as fault:
        kept = {"reward": parts.reward, "done": parts.done}
        return Answer(_fault_reply(fault, kept, features), op)


def _fault_reply(
    fault: EnvironmentFault, kept: dict[str, Any], features: Features
) -> bytes:
    """Encode an error; what is kept, or a text too long, is left out if it must."""
    extra = {"exception": fault.exception} if features.exception else None
    encode = partial(native.error_reply, ext=extra)
    data = error_data(fault)
    try:
        return _boundary.call(_fitting, features, encode, data | kept)
    except EnvironmentFault as again:
        if again.exception == LimitExceeded.__name__:
            data = error_data(again)
        return encode(data)


def _decode(decode: Callable[[Any], Any], value: Any) -> Any:
    """Make an action; what a validator raises beyond invalidity is its author's."""
    try:
        return decode(value)
    except (InvalidMessage, InvalidJsonText, json.JSONDecodeError):
        raise
    except BaseException as error:
        raise _boundary.fault(error) from error


def _decided_again(message: str | bytes) -> _Asked:
    """Understand any message as upstream does.

    Raises:
        InvalidJsonText: it is not JSON.
        InvalidMessage: it is not an object or does not fit its model.
        UnknownType: no model has its type.
    """
    value = loads(message)
    if not isinstance(value, dict):
        raise InvalidMessage([_not_an_object(value)])
    op = value.get("type", "")
    model = _MODELS.get(op) if isinstance(op, str) else None
    if model is None:
        raise UnknownType(str(op))
    try:
        checked = model.model_validate(value)
    except ValidationError as error:
        raise InvalidMessage(validation_errors(error)) from error
    return _Asked(op, restore(getattr(checked, "data", {})))


def _not_an_object(value: object) -> dict[str, Any]:
    return {
        "type": "dict_type",
        "loc": [],
        "msg": "Input should be a valid dictionary",
        "input": value,
    }
