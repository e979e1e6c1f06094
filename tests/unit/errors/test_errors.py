from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import pytest

from openenv import errors
from openenv.errors import OpenEnvError, ServerError, server_error

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES: dict[str, OpenEnvError] = {
    "OpenEnvError": errors.OpenEnvError("text"),
    "ProtocolError": errors.ProtocolError("text"),
    "LocalProtocolError": errors.LocalProtocolError("text"),
    "RemoteProtocolError": errors.RemoteProtocolError("text"),
    "LimitExceeded": errors.LimitExceeded("too big", size=5, limit=4),
    "ClientError": errors.ClientError("text"),
    "ConnectFailed": errors.ConnectFailed("refused", "ws://h/ws", 403),
    "ConnectionClosed": errors.ConnectionClosed(1009, "too big"),
    "RequestTimeout": errors.RequestTimeout("step", 0.5),
    "SessionLost": errors.SessionLost("server restarted"),
    "ServerError": errors.ServerError("m", "ODD", {"message": "m", "x": [1]}),
    "InvalidJson": errors.InvalidJson("m"),
    "UnknownMessageType": errors.UnknownMessageType("m"),
    "ValidationFailed": server_error({"code": "VALIDATION_ERROR", "errors": [{}]}),
    "ExecutionFailed": server_error(
        {"code": "EXECUTION_ERROR", "exception": "KeyError"}
    ),
    "CapacityReached": server_error(
        {"code": "CAPACITY_REACHED", "active_sessions": 1, "max_sessions": 2}
    ),
    "FactoryFailed": server_error({"code": "FACTORY_ERROR", "factory_name": "f"}),
    "SessionFailed": errors.SessionFailed("m"),
    "SessionExpired": errors.SessionExpired("m"),
    "StepTimeout": errors.StepTimeout("m"),
    "EncodeError": errors.EncodeError("data.a[3]", "torch.dtype"),
    "EnvironmentFault": errors.EnvironmentFault("boom", "ValueError"),
    "ProviderError": errors.ProviderError("no docker", "LocalDockerProvider"),
    "ConcurrencyConfigurationError": errors.ConcurrencyConfigurationError("E", 4),
    "SessionCapacityError": errors.SessionCapacityError(3, 4),
    "SessionNotFoundError": errors.SessionNotFoundError("id"),
    "SessionCreationError": errors.SessionCreationError("why"),
    "EnvironmentFactoryError": errors.EnvironmentFactoryError("make"),
}

BUILTIN_PARENT = {
    "ConnectFailed": ConnectionError,
    "ConnectionClosed": ConnectionError,
    "RequestTimeout": TimeoutError,
    "SessionLost": RuntimeError,
    "ServerError": RuntimeError,
    "EncodeError": TypeError,
    "EnvironmentFault": RuntimeError,
    "ProviderError": RuntimeError,
}

CODES = {
    "INVALID_JSON": errors.InvalidJson,
    "UNKNOWN_TYPE": errors.UnknownMessageType,
    "VALIDATION_ERROR": errors.ValidationFailed,
    "EXECUTION_ERROR": errors.ExecutionFailed,
    "CAPACITY_REACHED": errors.CapacityReached,
    "FACTORY_ERROR": errors.FactoryFailed,
    "SESSION_ERROR": errors.SessionFailed,
    "SESSION_EXPIRED": errors.SessionExpired,
    "STEP_TIMEOUT": errors.StepTimeout,
}


def _walk(cls: type[OpenEnvError]) -> Iterator[type[OpenEnvError]]:
    yield cls
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _walk(child)


def test_every_class_of_the_tree_has_an_example_and_is_exported():
    names = {cls.__name__ for cls in _walk(OpenEnvError)}

    assert names == set(EXAMPLES)
    assert names | {"server_error"} == set(errors.__all__)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, "pickle"])
def test_errors_keep_class_text_and_fields_through_pickle_and_copy(name, clone):
    error = EXAMPLES[name]

    again = pickle.loads(pickle.dumps(error)) if clone == "pickle" else clone(error)

    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_os_errors_survive_every_pickle_protocol(protocol):
    error = errors.ConnectionClosed(1006, "reset by peer")

    again = pickle.loads(pickle.dumps(error, protocol))

    assert (1006, "reset by peer") == (again.code, again.reason)
    assert again.errno is None


def test_notes_survive_pickling():
    error = errors.SessionLost("x")
    error.add_note("seen on worker 3")

    assert ["seen on worker 3"] == pickle.loads(pickle.dumps(error)).__notes__


@pytest.mark.parametrize("name", BUILTIN_PARENT)
def test_errors_are_caught_by_the_builtin_that_upstream_raises(name):
    assert isinstance(EXAMPLES[name], BUILTIN_PARENT[name])


@pytest.mark.parametrize("code", CODES)
def test_each_wire_code_has_its_class(code):
    error = server_error({"message": "why", "code": code})

    assert CODES[code] is type(error)
    assert code == CODES[code].wire_code
    assert f"Server error: why (code: {code})" == str(error)


def test_the_code_table_is_complete():
    assert set(CODES.values()) == set(ServerError.__subclasses__())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({}, "Server error: Unknown error (code: UNKNOWN)"),
        ({"message": "m", "code": "NEW"}, "Server error: m (code: NEW)"),
        ({"message": 3, "code": 4}, "Server error: 3 (code: 4)"),
        ({"message": "m", "code": ["x"]}, "Server error: m (code: ['x'])"),
    ],
)
def test_an_unknown_code_gives_a_plain_server_error(data, text):
    error = server_error(data)

    assert type(error) is ServerError
    assert text == str(error)
    assert data == error.data


def test_fields_of_server_errors_come_from_the_frame():
    capacity = EXAMPLES["CapacityReached"]
    assert isinstance(capacity, errors.CapacityReached)

    assert (1, 2) == (capacity.active_sessions, capacity.max_sessions)
    assert [{}] == EXAMPLES["ValidationFailed"].errors
    assert "KeyError" == EXAMPLES["ExecutionFailed"].exception
    assert "f" == EXAMPLES["FactoryFailed"].factory_name
    assert [] == errors.ValidationFailed("m").errors
    assert errors.ExecutionFailed("m").exception is None


def test_the_exception_name_is_taken_from_the_negotiated_extension():
    error = server_error(
        {"code": "EXECUTION_ERROR"}, {"exception": "ZeroDivisionError"}
    )

    assert isinstance(error, errors.ExecutionFailed)
    assert "ZeroDivisionError" == error.exception


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.ConnectFailed("refused"), "refused"),
        (
            errors.ConnectFailed("refused", "ws://h/ws"),
            "Failed to connect to ws://h/ws: refused",
        ),
        (
            errors.ConnectionClosed(1009),
            "connection closed with code 1009: message too big",
        ),
        (
            errors.ConnectionClosed(4000),
            "connection closed with code 4000: no reason given",
        ),
        (errors.RequestTimeout("step", 0.5), "step was not answered within 0.5 s"),
        (errors.RequestTimeout("step", -1e-9), "step was not answered within 0 s"),
        (
            errors.SessionLost("gone"),
            "the session is lost (gone); call reset() to begin a new one",
        ),
        (EXAMPLES["EncodeError"], "data.a[3]: cannot encode torch.dtype"),
        (
            errors.EncodeError("data", "list", "nested too deep"),
            "data: nested too deep",
        ),
        (EXAMPLES["SessionNotFoundError"], "Session 'id' not found."),
        (EXAMPLES["SessionCreationError"], "Failed to create session: why"),
        (
            EXAMPLES["SessionCapacityError"],
            "Server at capacity: 3/4 sessions active. Cannot accept new connections.",
        ),
        (
            EXAMPLES["EnvironmentFactoryError"],
            "Environment factory 'make' failed to create instance.",
        ),
        (errors.SessionNotFoundError("id", "own words"), "own words"),
    ],
)
def test_errors_say_what_happened(error, text):
    assert text == str(error)


def test_a_validation_error_notes_each_field_and_keeps_upstreams_text():
    wrong = [
        {"loc": ["position", 1], "msg": "Input should be a valid integer"},
        {"loc": [], "msg": "Input should be an object"},
    ]
    error = server_error(
        {"message": "Invalid message", "code": "VALIDATION_ERROR", "errors": wrong}
    )
    noted = (
        "position.1: Input should be a valid integer\ndata: Input should be an object"
    )

    assert "Server error: Invalid message (code: VALIDATION_ERROR)" == str(error)
    assert [noted] == error.__notes__
    assert [noted] == pickle.loads(pickle.dumps(error)).__notes__
