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
    from pydantic import ValidationError

ErrorData = dict[str, Any]

CLOSE_NORMAL = 1000
CLOSE_INTERNAL_ERROR = 1011

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


class InvalidJsonText(Exception):
    """Text that is not JSON; its argument is the decoder's text."""


class UnknownType(Exception):
    """A message type that does not exist; its argument is the type."""


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
    code = _Code(error_data(error)["code"])
    return _CLOSE_CODES.get(code, CLOSE_INTERNAL_ERROR)


def validation_errors(error: ValidationError) -> list[dict[str, Any]]:
    """Return pydantic's error dicts with exceptions in ``ctx`` as text."""
    errors: list[dict[str, Any]] = []
    for details in error.errors():
        item: dict[str, Any] = dict(details)
        context = item.get("ctx")
        if context is not None:
            item["ctx"] = {key: _plain(value) for key, value in context.items()}
        errors.append(item)
    return errors


def loads(text: str | bytes) -> Any:
    """Decode JSON exactly as upstream does.

    Raises:
        InvalidJsonText: with Python's own text.
    """
    try:
        return json.loads(text)
    except RecursionError:
        msg = "nested too deeply"
        raise InvalidJsonText(msg) from None
    except ValueError as error:  # also UnicodeDecodeError and too long integers
        raise InvalidJsonText(str(error)) from error


def _plain(value: object) -> object:
    return str(value) if isinstance(value, BaseException) else value
