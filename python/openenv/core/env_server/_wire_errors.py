"""Errors on the wire: exception to error data, error code to close code.

The one place where both are decided.  Texts and keys are upstream's; what upstream
does not have is in ``DEVIATIONS.md``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openenv.core.env_server.types import WSErrorCode
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
    WSErrorCode.CAPACITY_REACHED: 1013,  # try again later
    WSErrorCode.FACTORY_ERROR: CLOSE_INTERNAL_ERROR,
    WSErrorCode.SESSION_ERROR: CLOSE_INTERNAL_ERROR,
    WSErrorCode.SESSION_EXPIRED: 1001,  # going away
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
    match error:
        case InvalidMessage(errors=errors):
            code = WSErrorCode.VALIDATION_ERROR
            return {"message": "Invalid message", "code": code.value, "errors": errors}
        case InvalidJsonText():
            return _data(f"Invalid JSON: {error}", WSErrorCode.INVALID_JSON)
        case UnknownType():
            return _data(f"Unknown message type: {error}", WSErrorCode.UNKNOWN_TYPE)
        case EnvironmentFault():
            return _data(str(error), WSErrorCode.EXECUTION_ERROR)
        case SessionCapacityError(active_sessions=active, max_sessions=maximum):
            data = _data(str(error), WSErrorCode.CAPACITY_REACHED)
            return data | {"active_sessions": active, "max_sessions": maximum}
        case EnvironmentFactoryError(factory_name=name):
            data = _data(str(error), WSErrorCode.FACTORY_ERROR)
            return data | {"factory_name": name}
        case SessionIdle():
            text = f"Session expired after {error} s without a request"
            return _data(text, WSErrorCode.SESSION_EXPIRED)
        case _:
            text = str(error) or type(error).__name__
            return _data(text, WSErrorCode.SESSION_ERROR)


def close_code(error: BaseException) -> int:
    """Return the WebSocket close code that follows the error frame."""
    code = WSErrorCode(error_data(error)["code"])
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


def _data(message: str, code: WSErrorCode) -> ErrorData:
    return {"message": message, "code": code.value}


def _plain(value: object) -> object:
    return str(value) if isinstance(value, BaseException) else value
