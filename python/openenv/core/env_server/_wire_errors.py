"""Errors on the wire: exception to error data, error code to close code.

The one place where both are decided.  Texts and keys are upstream's; what upstream
does not have is in ``DEVIATIONS.md``.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

# ruff: noqa: N818 - STYLE 8: errors are named by what happened

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openenv.core.env_server.types import WSErrorCode as _Code
from openenv.errors import (
    EnvironmentFactoryError,
    EnvironmentFault,
    SessionCapacityError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError

ErrorData = dict[str, Any]

CLOSE_NORMAL = 1000
CLOSE_POLICY_VIOLATION = 1008
CLOSE_INTERNAL_ERROR = 1011

_TOO_DEEP = "nested too deeply"

_CLOSE_CODES = {  # RFC 6455 §7.4.1 and the IANA registry
    _Code.CAPACITY_REACHED: 1013,  # try again later
    _Code.FACTORY_ERROR: CLOSE_INTERNAL_ERROR,
    _Code.SESSION_ERROR: CLOSE_INTERNAL_ERROR,
    _Code.SESSION_EXPIRED: 1001,  # going away
}


class InvalidMessage(Exception):
    """A message or action that does not fit its model; the client's fault.

    Args:
        errors: error dicts in pydantic's form, ready for the wire.
    """

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__(errors)
        self.errors = errors

    def without_values(self) -> InvalidMessage:
        """Leave out what may have no JSON form: the inputs and their context."""
        kept = ("type", "loc", "msg")
        return InvalidMessage(
            [{key: error[key] for key in kept if key in error} for error in self.errors]
        )


class InvalidJsonText(Exception):
    """Text that is not JSON; its argument is the decoder's text."""


class UnknownType(Exception):
    """A message type that does not exist; its argument is the type."""


class Flood(Exception):
    """More requests wait than are held; its argument tells how many."""


class SessionIdle(Exception):
    """A session that was idle too long; its argument is the time in seconds."""


def error_data(error: BaseException) -> ErrorData:
    """Return the ``data`` object of the error frame for an exception."""
    text = str(error) or type(error).__name__
    more: ErrorData = {}
    match error:
        case InvalidMessage(errors=errors):
            code, text, more = (
                _Code.VALIDATION_ERROR,
                "Invalid message",
                {"errors": errors},
            )
        case InvalidJsonText():
            code, text = _Code.INVALID_JSON, f"Invalid JSON: {error}"
        case UnknownType():
            code, text = _Code.UNKNOWN_TYPE, f"Unknown message type: {error}"
        case EnvironmentFault():
            code = _Code.EXECUTION_ERROR
        case SessionCapacityError(active_sessions=active, max_sessions=maximum):
            code = _Code.CAPACITY_REACHED
            more = {"active_sessions": active, "max_sessions": maximum}
        case EnvironmentFactoryError(factory_name=name):
            code, more = _Code.FACTORY_ERROR, {"factory_name": name}
        case SessionIdle():
            code = _Code.SESSION_EXPIRED
            text = f"Session expired after {error} s without a request"
        case _:
            code = _Code.SESSION_ERROR
    return {"message": text, "code": code.value, **more}


def close_code(error: BaseException) -> int:
    """Return the WebSocket close code that follows the error frame."""
    if isinstance(error, Flood):
        return CLOSE_POLICY_VIOLATION
    code = _Code(error_data(error)["code"])
    return _CLOSE_CODES.get(code, CLOSE_INTERNAL_ERROR)


def validation_errors(error: ValidationError) -> list[dict[str, Any]]:
    """Return pydantic's error dicts with exceptions in ``ctx`` as text."""
    return [_plain_details(details) for details in error.errors()]


def loads(text: str | bytes) -> Any:
    """Decode JSON exactly as upstream does.

    Raises:
        InvalidJsonText: with Python's own text.
    """
    try:
        return loads_part(text)
    except ValueError as error:  # also UnicodeDecodeError and too long integers
        raise InvalidJsonText(str(error)) from error


def loads_part(text: str | bytes) -> Any:
    """Decode JSON that is part of a message.

    Raises:
        InvalidJsonText: it is nested too deeply.
        ValueError: Python's own, with positions in the part.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise too_deep() from None


def too_deep() -> InvalidJsonText:
    """Return the refusal of what is nested deeper than Python follows."""
    return InvalidJsonText(_TOO_DEEP)


def _plain_details(details: Mapping[str, Any]) -> dict[str, Any]:
    item = dict(details)
    context = item.get("ctx")
    if context is not None:
        item["ctx"] = {key: _plain(value) for key, value in context.items()}
    return item


def _plain(value: object) -> object:
    return str(value) if isinstance(value, BaseException) else value
