"""The protocol core, compiled from ``rust/openenv-py``.

Nothing here starts a thread, and only `Hub` touches sockets: bytes and times come
in, bytes and results go out. Times are seconds of the caller's event loop
(``loop.time()``).
"""

import asyncio
import socket
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self, final

__all__ = [
    "ClientEndpoint",
    "Decoder",
    "Hub",
    "Irregular",
    "Raw",
    "Request",
    "Transport",
    "error_reply",
    "forget_entropy",
    "json_decode",
    "json_encode",
    "mcp_reply",
    "observation_reply",
    "split_request",
    "state_reply",
]

# --- JSON -----------------------------------------------------------------------

def json_encode(value: object) -> bytes:
    """Encode a value as compact JSON, non-ASCII text as it is.

    Beyond ``json.dumps``: numpy arrays (nested lists, C order) and scalars,
    ``bytes`` (``{"__bytes__": "<base64>"}``), dates and times (ISO 8601), UUID,
    Enum (its value), Decimal (text), sets, dataclasses, pydantic models and
    msgspec structs. NaN and infinities become ``null``; lone surrogates are
    escaped.

    Args:
        value: What to encode.

    Returns:
        UTF-8 text.

    Raises:
        EncodeError: A value has no JSON form or nests deeper than 200; the
            error names its path, ``data.frames[3].mask: cannot encode …``.
    """

def json_decode(data: bytes | str) -> Any:
    """Decode JSON with the acceptance, values and error texts of ``json.loads``.

    Args:
        data: One JSON text.

    Returns:
        dict, list, str, int, float, bool or None.

    Raises:
        json.JSONDecodeError: The text is not JSON.
    """

# --- server side ------------------------------------------------------------------

@final
class Request:
    """One regular request of a client.

    ``op`` is what is asked; ``data`` the raw JSON object that came with it, None
    where the operation has none or it was left out; ``marked`` tells that ``data``
    may hold bytes markers, so that it has to be decoded to objects and given to
    ``openenv._plain.restore``.
    """

    __match_args__: ClassVar[tuple[str, str]] = ("op", "data")
    @property
    def op(self) -> Literal["close", "mcp", "reset", "state", "step"]: ...
    @property
    def data(self) -> bytes | None: ...
    @property
    def marked(self) -> bool: ...

@final
class Irregular:
    """Any other message, as it came.

    It may be broken or only unusual (keys in excess, lone surrogates, nesting
    over 200): the caller decides again with ``json.loads`` and upstream's models.
    """

    __match_args__: ClassVar[tuple[str]] = ("raw",)
    @property
    def raw(self) -> bytes: ...

def split_request(message: str | bytes) -> Request | Irregular:
    """Tell what a client's message asks, without parsing its ``data``.

    Args:
        message: The payload of one text or binary WebSocket message.

    Returns:
        A ``Request`` for exactly upstream's shape, an ``Irregular`` for all else.

    Raises:
        TypeError: The message is neither str nor bytes.
    """

def observation_reply(
    observation: object,
    reward: object,
    done: object,
    metadata: object | None = None,
    *,
    nonfinite: bool = False,
    ext: dict[str, Any] | None = None,
) -> bytes:
    """Encode the answer to ``reset`` and ``step``.

    Args:
        observation: The observation's own fields.
        reward: Number, bool or None.
        done: Whether the episode is over.
        metadata: Left out of the reply when empty.
        nonfinite: Tell the peer in ``ext.nonfinite`` which floats were written as
            ``null``: a list of ``[path below data, "nan" | "inf" | "-inf"]``.
        ext: What else to say beside ``data``; only for peers that asked for it.

    Returns:
        The whole JSON text.

    Raises:
        EncodeError: As `json_encode`; the path begins with the member's name.
    """

def state_reply(
    state: object, *, nonfinite: bool = False, ext: dict[str, Any] | None = None
) -> bytes:
    """Encode the answer to ``state``; arguments and errors as `observation_reply`."""

def error_reply(data: object, *, ext: dict[str, Any] | None = None) -> bytes:
    """Encode an error; ``data`` has ``message``, ``code`` and what the code adds."""

def mcp_reply(data: object) -> bytes:
    """Encode the answer to ``mcp``: a JSON-RPC response."""

# --- client side ------------------------------------------------------------------

@final
class Raw:
    """Finished JSON, sent as it is.

    Args:
        data: One well-formed JSON value; not checked.
    """

    def __new__(cls, data: bytes) -> Self: ...

@final
class Decoder:
    """How an answer's ``data`` becomes the result of a call. Make once, use often."""

    @staticmethod
    def data() -> Decoder:
        """Give the whole ``data`` value as Python objects."""

    @staticmethod
    def result(
        step_result: type,
        from_json: Callable[[bytes], object] | None = None,
        from_objects: Callable[[Any], object] | None = None,
        lift: Sequence[str] = (),
    ) -> Decoder:
        """Give a ``step_result`` with observation, reward, done and metadata.

        Args:
            step_result: A dataclass of these four, made without its ``__init__``;
                ``metadata`` is a dict or None.
            from_json: Makes the observation from its JSON object, into which the
                members named in ``lift`` were added at the end. None: a dict.
            from_objects: The same from Python objects; called instead where the
                text cannot be used as it is (non-finite floats or ``bytes`` to be
                put back, JSON that only Python's ``json`` takes).
            lift: Which of ``done``, ``reward``, ``metadata`` the observation's type
                has as fields of its own.
        """

    @staticmethod
    def state(
        from_json: Callable[[bytes], object] | None = None,
        from_objects: Callable[[Any], object] | None = None,
    ) -> Decoder:
        """Give the state made by ``from_json`` (None: a dict); see `result`."""

@final
class Hub:
    """The sockets of one event loop's plain connections; on Linux.

    The loop watches `fileno` and calls `run` whenever it is readable. Where a slow
    server answers many sessions, answers are held back for a twentieth of the round
    trip, at most a millisecond, so that one wake-up reads several.

    Args:
        event_loop: The loop that the connections belong to.

    Raises:
        OSError: The system has no descriptor left, or forbids epoll or timerfd.
    """

    def __new__(cls, event_loop: asyncio.AbstractEventLoop) -> Self: ...
    def __len__(self) -> int: ...
    def fileno(self) -> int:
        """Return the descriptor to watch for reading; -1 once closed."""

    def attach(
        self,
        socket: socket.socket,
        driver: asyncio.Protocol,
        endpoint: ClientEndpoint,
        max_unsent_bytes: int,
    ) -> Transport:
        """Take over a connected, non-blocking socket.

        Args:
            socket: Is detached from its Python object.
            driver: Its ``connection_lost`` is called, in a turn of its own.
            endpoint: Gets what is read; what it wants sent is sent.
            max_unsent_bytes: A peer that leaves more unread is cut off.

        Raises:
            RuntimeError: The hub is closed.
            OSError: The system refuses.
        """

    def run(self) -> None:
        """Read and write what can be read and written now."""

    def flush(self) -> None:
        """Send what was asked since `run`, which has this called in its turn."""

    def close(self) -> None:
        """Cut off what is left, and watch nothing any more."""

@final
class Transport:
    """One socket of a `Hub`, with the part of ``asyncio.Transport`` a driver needs."""

    def write(self, data: bytes) -> None:
        """Send, or keep for later what the socket does not take."""

    def request(
        self, op: str, payload: object, decoder: Decoder, timeout_s: float | None
    ) -> Future[Any] | None:
        """Ask at once, where that can be done.

        Args:
            op: ``reset``, ``step``, ``state`` or ``mcp``.
            payload: What becomes ``data``; None for ``state``.
            decoder: How the answer's ``data`` becomes the result.
            timeout_s: Seconds to wait for the answer; None: for ever.

        Returns:
            The answer's future; None, and nothing was sent, on any other loop than
            its own and when the connection is not open.

        Raises:
            EncodeError: The payload has no wire form; nothing was sent.
            LimitExceeded: It is larger than either side takes; nothing was sent.
        """

    def close(self) -> None:
        """Send what is unsent, then close."""

    def abort(self) -> None:
        """Close at once."""

    def is_closing(self) -> bool:
        """Tell whether it is closed or about to be."""

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are unsent."""

def forget_entropy() -> None:
    """Draw new masking keys; for a forked child, which has its parent's."""

@final
class ClientEndpoint:
    """One classic connection of a client: upgrade, frames, order of answers, timers.

    The driver writes what methods return, calls `receive` for every read, `tick`
    no later than `next_timeout`, and `lost` when the transport is gone. After each
    call it looks at `should_disconnect`. Futures are resolved inside these calls,
    never while the endpoint is locked; methods may be called from any thread, but
    futures belong to the driver's loop.

    Args:
        host: Value of the ``Host`` header.
        target: Path and query of the upgrade request.
        headers: Further request headers.
        max_message_bytes: Longest message taken from the server.
        ping_interval_s: Idle time after which a ping is sent; None: no pings.
        ping_timeout_s: Silence after a ping that ends the connection; None: never.

    Raises:
        LocalProtocolError: A header cannot be sent or belongs to the upgrade.
    """

    def __new__(
        cls,
        host: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        *,
        max_message_bytes: int,
        ping_interval_s: float | None,
        ping_timeout_s: float | None,
    ) -> Self: ...
    def connect(self, opened: Future[None], deadline: float, now: float) -> bytes:
        """Begin; gives the upgrade request to write.

        ``opened`` gets None once the server has agreed, else ``ConnectFailed``
        (``status`` is that of a refusal) or a ``RequestTimeout``'s cause.
        """

    def request(
        self,
        op: str,
        payload: object,
        future: Future[Any],
        decoder: Decoder,
        deadline: float,
        now: float,
    ) -> bytes | None:
        """Send a request, or queue it behind the one that is unanswered.

        Args:
            op: ``reset``, ``step``, ``state`` or ``mcp``.
            payload: What becomes ``data``: any value of `json_encode`, a `Raw`, or
                None for ``state``.
            future: Gets the decoded answer, ``ServerError`` for an error answer,
                ``RequestTimeout`` at the deadline, ``ConnectionClosed`` when the
                connection ends first.
            decoder: How the answer is decoded.
            deadline: When to give up.
            now: The loop's time.

        Returns:
            Bytes to write now; None when the request waits.

        Raises:
            EncodeError: The payload has no JSON form; nothing was sent.
            LimitExceeded: It is longer than the server said it takes, or too many
                requests wait.
            ConnectionClosed: The connection is closing or closed.
        """

    def abandon(self, future: Future[Any]) -> None:
        """Give the request of ``future`` up: if sent, its answer will be dropped."""

    def receive(self, data: bytes, now: float) -> bytes | None:
        """Take what was read; resolves futures; gives bytes to write."""

    def tick(self, now: float) -> bytes | None:
        """Run the timers that are due; gives bytes to write."""

    def next_timeout(self) -> float | None:
        """Tell when `tick` has to be called next."""

    def close(self, code: int, now: float) -> bytes | None:
        """Say goodbye (``{"type":"close"}`` and a close frame); fails what waits."""

    def lost(self, error: BaseException | None = None) -> None:
        """Tell that the transport is gone; fails everything outstanding."""

    def take_ignored(self) -> list[str]:
        """Take the reset keys that the server said it ignored since the last call."""

    @property
    def state(self) -> Literal["idle", "connecting", "open", "closing", "closed"]: ...
    @property
    def should_disconnect(self) -> bool:
        """Whether the driver has to close the transport now."""

    @property
    def owed(self) -> int:
        """How many answers the server owes to requests nobody waits for."""

    @property
    def outstanding(self) -> int:
        """How many requests are unanswered or wait."""

    @property
    def closed_error(self) -> BaseException | None:
        """Why no further request is taken: the server's refusal, or the closing."""

    @property
    def close_code(self) -> int | None: ...
    @property
    def close_reason(self) -> str: ...
    @property
    def peer_max_message_bytes(self) -> int | None:
        """Longest message the server takes (``OpenEnv-Max-Message-Bytes``), if told."""

    @property
    def response_headers(self) -> list[tuple[str, str]]:
        """Headers of the server's 101 answer, names in lower case."""
