"""Every error of OpenEnv, in one tree.

The first question of each class is whose fault it was::

    OpenEnvError
    ├── ProtocolError                 the WebSocket or OpenEnv rules were broken
    │   ├── LocalProtocolError        … by this side
    │   ├── RemoteProtocolError       … by the peer
    │   └── LimitExceeded             … a named limit was hit
    ├── ClientError                   a call on a client failed
    │   ├── ConnectFailed             (ConnectionError) no connection came about
    │   ├── ConnectionClosed          (ConnectionError) it ended under the call
    │   ├── RequestTimeout            (TimeoutError) no answer in time
    │   ├── SessionLost               (RuntimeError) reset() is needed first
    │   └── ServerError               (RuntimeError) the server answered an error
    │       ├── InvalidJson           INVALID_JSON
    │       ├── UnknownMessageType    UNKNOWN_TYPE
    │       ├── ValidationFailed      VALIDATION_ERROR
    │       ├── ExecutionFailed       EXECUTION_ERROR
    │       ├── CapacityReached       CAPACITY_REACHED
    │       ├── FactoryFailed         FACTORY_ERROR
    │       ├── SessionFailed         SESSION_ERROR
    │       ├── SessionExpired        SESSION_EXPIRED
    │       └── StepTimeout           STEP_TIMEOUT
    ├── EncodeError                   (TypeError) a value has no wire form
    ├── EnvironmentFault              the environment's own code raised
    ├── ProviderError                 a container or process failed
    └── ConcurrencyConfigurationError, SessionCapacityError, SessionNotFoundError,
        SessionCreationError, EnvironmentFactoryError
                                      what the server raises (upstream's names)

The builtin parents are the classes that upstream raises in the same place, so an
``except ConnectionError`` or ``except RuntimeError`` written for it still works.
Each error survives ``pickle`` and ``copy`` with its fields, because Ray and
``multiprocessing`` carry errors between processes.
"""

# ruff: noqa: N818 - STYLE 8: errors are named by what happened, not by a suffix

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "CapacityReached",
    "ClientError",
    "ConcurrencyConfigurationError",
    "ConnectFailed",
    "ConnectionClosed",
    "EncodeError",
    "EnvironmentFactoryError",
    "EnvironmentFault",
    "ExecutionFailed",
    "FactoryFailed",
    "InvalidJson",
    "LimitExceeded",
    "LocalProtocolError",
    "OpenEnvError",
    "ProtocolError",
    "ProviderError",
    "RemoteProtocolError",
    "RequestTimeout",
    "ServerError",
    "SessionCapacityError",
    "SessionCreationError",
    "SessionExpired",
    "SessionFailed",
    "SessionLost",
    "SessionNotFoundError",
    "StepTimeout",
    "UnknownMessageType",
    "ValidationFailed",
    "server_error",
]

_ErrorT = TypeVar("_ErrorT", bound="OpenEnvError")


class OpenEnvError(Exception):
    """Be the root of all errors that OpenEnv raises on purpose."""

    @override
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _restore, (type(self), self.args, dict(self.__dict__))


def _restore(
    cls: type[_ErrorT], args: tuple[object, ...], fields: dict[str, object]
) -> _ErrorT:
    # Not through __init__: its parameters are fields, not what `args` holds, and
    # OSError.__new__ would read two of them as (errno, strerror).
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(fields)
    return error


# --- the protocol -------------------------------------------------------------


class ProtocolError(OpenEnvError):
    """Report a broken rule of RFC 6455 or of the OpenEnv wire."""


class LocalProtocolError(ProtocolError):
    """Report that this side broke a rule; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """Report that the peer broke a rule; the connection is given up."""


class LimitExceeded(ProtocolError):
    """Report that a named limit was hit.

    Args:
        message: What was too large, and which setting moves the limit.
        size: What was asked for, in the limit's unit; None where unknown.
        limit: The bound that holds; None where unknown.
    """

    def __init__(
        self, message: str, size: int | None = None, limit: int | None = None
    ) -> None:
        super().__init__(message)
        self.size = size
        self.limit = limit


# --- the client ---------------------------------------------------------------


class ClientError(OpenEnvError):
    """Report that a call on a client failed."""


class ConnectFailed(ClientError, ConnectionError):
    """Report that no connection came about: DNS, TCP, TLS or the upgrade failed.

    Args:
        reason: What went wrong.
        url: The WebSocket URL that was dialled; the driver fills it in.
        status: The HTTP status of a refused upgrade, else None.
    """

    def __init__(
        self, reason: str, url: str | None = None, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.url = url
        self.status = status

    @override
    def __str__(self) -> str:
        # upstream: core/env_client.py words it so
        if self.url is None:
            return self.reason
        return f"Failed to connect to {self.url}: {self.reason}"


class ConnectionClosed(ClientError, ConnectionError):
    """Report that the connection ended before the call was answered.

    Args:
        code: The close code (RFC 6455 §7.4); 1006 when no close frame came.
        reason: The peer's close reason or what the transport said; may be empty.
    """

    def __init__(self, code: int = 1006, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason

    @override
    def __str__(self) -> str:
        reason = self.reason or _CLOSE_CODES.get(self.code, "no reason given")
        return f"connection closed with code {self.code}: {reason}"


class RequestTimeout(ClientError, TimeoutError):
    """Report that no answer came before the call's deadline.

    The request stays with the server; its late answer is dropped.

    Args:
        operation: ``reset``, ``step``, ``state``, ``mcp`` or ``connect``.
        timeout_s: How long was waited, in seconds.
    """

    def __init__(self, operation: str, timeout_s: float) -> None:
        super().__init__(operation, timeout_s)
        self.operation = operation
        self.timeout_s = timeout_s

    @override
    def __str__(self) -> str:
        waited_s = max(0.0, round(self.timeout_s, 3))  # a deadline may lie behind
        return f"{self.operation} was not answered within {waited_s:g} s"


class SessionLost(ClientError, RuntimeError):
    """Report that the server's session is gone; only ``reset()`` can go on.

    Args:
        reason: How the session was lost.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    @override
    def __str__(self) -> str:
        return f"the session is lost ({self.reason}); call reset() to begin a new one"


class ServerError(ClientError, RuntimeError):
    """Report an error that the server answered.

    Args:
        message: The server's sentence.
        code: The wire code, such as ``EXECUTION_ERROR``.
        data: The whole ``data`` object of the error frame.
    """

    wire_code: ClassVar[str] = "UNKNOWN"

    def __init__(
        self,
        message: str = "Unknown error",
        code: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        code = code or self.wire_code
        super().__init__(message, code)
        self.message = message
        self.code = code
        self.data: dict[str, Any] = (
            {"message": message, "code": code} if data is None else dict(data)
        )

    @override
    def __str__(self) -> str:
        # upstream: core/env_client.py; its users match on this text
        return f"Server error: {self.message} (code: {self.code})"


class InvalidJson(ServerError):
    """Report that the server could not read the frame as JSON."""

    wire_code = "INVALID_JSON"


class UnknownMessageType(ServerError):
    """Report that the server does not know the message's ``type``."""

    wire_code = "UNKNOWN_TYPE"


class ValidationFailed(ServerError):
    """Report that the message or the action did not fit the server's model."""

    wire_code = "VALIDATION_ERROR"

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Return pydantic's error dicts (``type``, ``loc``, ``msg``, ``input``)."""
        return list(self.data.get("errors") or ())

    @property
    def details(self) -> str:
        """Return what was wrong with which field, a line each."""
        return "\n".join(
            f"{'.'.join(map(str, error.get('loc', ()))) or 'data'}: {error.get('msg')}"
            for error in self.errors
        )


class ExecutionFailed(ServerError):
    """Report that the environment raised in ``reset``, ``step`` or ``state``."""

    wire_code = "EXECUTION_ERROR"

    @property
    def exception(self) -> str | None:
        """Return the exception's type name, None if the server does not tell."""
        return self.data.get("exception")


class CapacityReached(ServerError):
    """Report that all of the server's sessions are taken; a later call may work."""

    wire_code = "CAPACITY_REACHED"

    @property
    def active_sessions(self) -> int | None:
        """Return how many sessions were open, None if the server does not tell."""
        return self.data.get("active_sessions")

    @property
    def max_sessions(self) -> int | None:
        """Return how many sessions may be open, None if not told."""
        return self.data.get("max_sessions")


class FactoryFailed(ServerError):
    """Report that the environment could not be constructed."""

    wire_code = "FACTORY_ERROR"

    @property
    def factory_name(self) -> str | None:
        """Return the name of the factory, None if the server does not tell."""
        return self.data.get("factory_name")


class SessionFailed(ServerError):
    """Report that the session as a whole broke on the server."""

    wire_code = "SESSION_ERROR"


class SessionExpired(ServerError):
    """Report that the server gave the session up because it was idle too long."""

    wire_code = "SESSION_EXPIRED"


class StepTimeout(ServerError):
    """Report that the server's own limit for one step ran out."""

    wire_code = "STEP_TIMEOUT"


def server_error(
    data: Mapping[str, Any], ext: Mapping[str, Any] | None = None
) -> ServerError:
    """Make the error of an error frame; unknown codes give plain `ServerError`.

    Args:
        data: The frame's ``data`` object.
        ext: The frame's ``ext`` object, sent to peers that negotiated it; its
            ``exception`` fills `ExecutionFailed.exception`.

    Returns:
        The error, ready to be raised or set on a future.
    """
    message, code = data.get("message"), data.get("code")
    fields = dict(data)
    if ext is not None and "exception" in ext:
        fields.setdefault("exception", ext["exception"])
    cls = (
        _CLASS_BY_CODE.get(code, ServerError) if isinstance(code, str) else ServerError
    )
    error = cls(
        "Unknown error" if message is None else str(message),
        None if code is None else str(code),
        fields,
    )
    if isinstance(error, ValidationFailed) and error.errors:
        error.add_note(error.details)  # shown in tracebacks; the text stays upstream's
    return error


# --- values, environments, providers ------------------------------------------


class EncodeError(OpenEnvError, TypeError):
    """Report that a value has no form on the wire; nothing was sent.

    Args:
        path: Where the value stands, such as ``data.frames[3].mask``.
        type_name: The value's type, such as ``torch.dtype``.
        detail: What is wrong instead, when the type as such is not at fault.
    """

    def __init__(self, path: str, type_name: str, detail: str | None = None) -> None:
        super().__init__(path, type_name)
        self.path = path
        self.type_name = type_name
        self.detail = detail

    @override
    def __str__(self) -> str:
        return f"{self.path}: {self.detail or f'cannot encode {self.type_name}'}"


class EnvironmentFault(OpenEnvError, RuntimeError):
    """Report that an environment's own code raised.

    Args:
        message: The exception's text; its type name when it has none.
        exception: The exception's type name, None where unknown.
    """

    def __init__(self, message: str, exception: str | None = None) -> None:
        super().__init__(message)
        self.exception = exception


class ProviderError(OpenEnvError, RuntimeError):
    """Report that a container or process could not be started, asked or stopped.

    Args:
        message: What failed.
        provider: The provider's class name, None where unknown.
    """

    def __init__(self, message: str, provider: str | None = None) -> None:
        super().__init__(message)
        self.provider = provider


# --- upstream's server errors (core/env_server/exceptions.py) -----------------


class ConcurrencyConfigurationError(OpenEnvError):
    """Report more sessions asked for than the environment class allows.

    Args:
        environment_name: The environment class or factory.
        max_concurrent_envs: The limit that was asked for.
        message: A sentence to use instead of the usual one.
    """

    def __init__(
        self,
        environment_name: str,
        max_concurrent_envs: int,
        message: str | None = None,
    ) -> None:
        super().__init__(
            message
            or f"Environment '{environment_name}' does not set "
            "SUPPORTS_CONCURRENT_SESSIONS = True, so it cannot serve "
            f"max_concurrent_envs={max_concurrent_envs}. Set the flag on the class if "
            "its instances share no state, or set max_concurrent_envs=1."
        )
        self.environment_name = environment_name
        self.max_concurrent_envs = max_concurrent_envs


class SessionCapacityError(OpenEnvError):
    """Report that the server has no session left to give.

    Args:
        active_sessions: How many sessions are open.
        max_sessions: How many may be.
        message: A sentence to use instead of the usual one.
    """

    def __init__(
        self, active_sessions: int, max_sessions: int, message: str | None = None
    ) -> None:
        super().__init__(
            message
            or f"Server at capacity: {active_sessions}/{max_sessions} sessions active. "
            "Cannot accept new connections."
        )
        self.active_sessions = active_sessions
        self.max_sessions = max_sessions


class SessionNotFoundError(OpenEnvError):
    """Report that no session has the id.

    Args:
        session_id: The id that was asked for.
        message: A sentence to use instead of the usual one.
    """

    def __init__(self, session_id: str, message: str | None = None) -> None:
        super().__init__(message or f"Session '{session_id}' not found.")
        self.session_id = session_id


class SessionCreationError(OpenEnvError):
    """Report that a session could not be made.

    Args:
        reason: Why not.
        message: A sentence to use instead of the usual one.
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(message or f"Failed to create session: {reason}")
        self.reason = reason


class EnvironmentFactoryError(OpenEnvError):
    """Report that the environment's factory raised.

    Args:
        factory_name: The factory's ``__name__``, else its text.
        message: A sentence to use instead of the usual one.
    """

    def __init__(self, factory_name: str, message: str | None = None) -> None:
        super().__init__(
            message
            or f"Environment factory '{factory_name}' failed to create instance."
        )
        self.factory_name = factory_name


_CLASS_BY_CODE: Final[dict[str, type[ServerError]]] = {
    cls.wire_code: cls for cls in ServerError.__subclasses__()
}

_CLOSE_CODES: Final[dict[int, str]] = {  # RFC 6455 §7.4.1
    1000: "normal closure",
    1001: "the peer is going away",
    1002: "protocol error",
    1006: "the peer vanished without a close frame",
    1008: "refused by policy",
    1009: "message too big",
    1011: "internal error of the peer",
    1013: "try again later",
}
