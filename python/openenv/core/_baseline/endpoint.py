"""One classic connection of a client: upgrade, frames, order of answers, timers.

::

    idle ──connect──> connecting ──101──> open ──close──> closing ──> closed
                          └───── any failure, or the peer's Close ─────┘

Every method first lets the machine move and collects what there is to tell; futures are
resolved after that, so that a decoder that calls back finds the machine in order.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, final

from typing_extensions import override

from openenv.core._baseline import causes
from openenv.core._baseline.calls import Call, Calls
from openenv.core._baseline.decoder import (
    REPLIES,
    Decoder,
    error_of,
    is_error,
    read_answer,
)
from openenv.core._baseline.encoding import REQUEST, Writer
from openenv.core._baseline.keepalive import Keepalive
from openenv.core._baseline.line import Heard, Line, Message, Opened
from openenv.errors import (
    ConnectionClosed,
    LimitExceeded,
    OpenEnvError,
    RequestTimeout,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

_CLOSE_TIMEOUT_S: Final = 5.0  # as long as it may take a busy server to say goodbye
_GOODBYE: Final = b'{"type":"close"}'
_MAX_BYTES_TOLD: Final = "openenv-max-message-bytes"


def forget_entropy() -> None:
    """Do nothing: masking keys come from the system, a child's are its own."""


@final
class Raw:
    """Finished JSON, sent as it is."""

    def __init__(self, data: bytes) -> None:
        self.data = data


@final
class ClientEndpoint:
    """One classic connection of a client; for one thread at a time."""

    def __init__(
        self,
        host: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        *,
        max_message_bytes: int,
        ping_interval_s: float | None,
        ping_timeout_s: float | None,
    ) -> None:
        self._line = Line(host, target, headers, max_message_bytes)
        self._calls = Calls()
        self._keepalive = Keepalive(ping_interval_s, ping_timeout_s)
        self._state: Literal["idle", "connecting", "open", "closing", "closed"] = "idle"
        self._deadline = math.inf
        """When to give up connecting, or waiting for the peer's Close."""
        self._opened: asyncio.Future[None] | None = None
        self._headers: list[tuple[str, str]] = []
        self._cause: causes.Cause | None = None
        self._refusal: bytes | None = None
        """The error that the server sent unasked before it closes."""
        self._ignored: list[str] = []
        self._to_tell: list[Callable[[], None]] = []

    @override
    def __repr__(self) -> str:
        return f"<ClientEndpoint {self._state}>"

    # --- what the driver calls --------------------------------------------------

    def connect(
        self,
        opened: asyncio.Future[None],
        deadline: float,
        now: float,  # noqa: ARG002 - all methods take the time
    ) -> bytes:
        """Begin; gives the upgrade request to write."""
        self._state, self._opened, self._deadline = "connecting", opened, deadline
        return self._line.request

    def request(
        self,
        op: str,
        payload: object,
        future: asyncio.Future[Any],
        decoder: Decoder,
        deadline: float,
        now: float,
    ) -> bytes | None:
        """Send a request, or queue it behind the one that is unanswered."""
        text = _request_text(op, payload)
        if self._state != "open" or self._refusal is not None:
            raise self._ending()
        limit = self.peer_max_message_bytes
        if limit is not None and len(text) > limit:
            msg = f"message of {len(text)} bytes, but the server takes {limit}"
            raise LimitExceeded(msg, len(text), limit)
        self._calls.submit(Call(op, text, future, decoder, deadline, deadline - now))
        self._send_next()
        return self._line.output() or None

    def abandon(self, future: asyncio.Future[Any]) -> None:
        """Give the request of ``future`` up: if sent, its answer will be dropped."""
        self._calls.abandon(future)

    def receive(self, data: bytes, now: float) -> bytes | None:
        """Take what was read; resolves futures; gives bytes to write."""
        if self._state in {"idle", "closed"}:
            return None
        if self._state != "connecting":
            self._keepalive.heard(now)
        for heard in self._line.receive(bytes(data)):
            self._hear(heard, now)
        return self._moved()

    def tick(self, now: float) -> bytes | None:
        """Run the timers that are due; gives bytes to write."""
        if self._state == "connecting" and self._deadline <= now:
            self._finish(causes.CONNECT_TIMED_OUT)
        elif self._state == "closing" and self._deadline <= now:
            self._finish(causes.CLOSED_BY_CALLER)
        elif self._state == "open":
            self._tick_open(now)
        return self._moved()

    def next_timeout(self) -> float | None:
        """Tell when `tick` has to be called next."""
        when = self._deadline
        if self._state == "open":
            when = min(self._calls.next_deadline, self._keepalive.due)
        return when if math.isfinite(when) and self._state != "closed" else None

    def close(self, code: int, now: float) -> bytes | None:
        """Say goodbye (``{"type":"close"}`` and a close frame); fails what waits."""
        if self._state == "open":
            self._state, self._deadline = "closing", now + _CLOSE_TIMEOUT_S
            self._cause = causes.CLOSED_BY_CALLER
            self._fail_all()
            self._line.send(_GOODBYE)
            self._line.close(code)
        elif self._state in {"idle", "connecting"}:
            self._finish(causes.CLOSED_BY_CALLER)
        return self._moved()

    def lost(self, error: BaseException | None = None) -> None:  # noqa: ARG002 - adds nothing to `ENDED`
        """Tell that the transport is gone; fails everything outstanding."""
        self._finish(causes.ENDED)
        self._moved()

    def take_ignored(self) -> list[str]:
        """Take the reset keys that the server said it ignored since the last call."""
        ignored, self._ignored = self._ignored, []
        return ignored

    @property
    def state(self) -> Literal["idle", "connecting", "open", "closing", "closed"]:
        """Where the connection stands."""
        return self._state

    @property
    def should_disconnect(self) -> bool:
        """Whether the driver has to close the transport now."""
        return self._state == "closed"

    @property
    def owed(self) -> int:
        """How many answers the server owes to requests nobody waits for."""
        return self._calls.owed

    @property
    def outstanding(self) -> int:
        """How many requests are unanswered or wait."""
        return len(self._calls.outstanding)

    @property
    def closed_error(self) -> BaseException | None:
        """Why no further request is taken: the server's refusal, or the closing."""
        is_over = self._refusal is not None or self._cause is not None
        return self._ending() if is_over else None

    @property
    def close_code(self) -> int | None:
        """The code that the connection ended with."""
        return None if self._cause is None else self._cause.code

    @property
    def close_reason(self) -> str:
        """Why the connection ended, in words."""
        return "" if self._cause is None else self._cause.reason

    @property
    def peer_max_message_bytes(self) -> int | None:
        """Longest message the server takes (``OpenEnv-Max-Message-Bytes``), if told."""
        told = dict(reversed(self._headers)).get(_MAX_BYTES_TOLD, "").strip()
        return int(told) if told.isascii() and told.isdigit() else None

    @property
    def response_headers(self) -> list[tuple[str, str]]:
        """Headers of the server's 101 answer, names in lower case."""
        return list(self._headers)

    # --- the machine ------------------------------------------------------------

    def _hear(self, heard: Heard, now: float) -> None:
        match heard:
            case Opened(headers):
                self._state, self._headers = "open", headers
                self._keepalive.heard(now)
                self._to_tell.append(self._tell_opened)
            case Message(payload):
                if self._state == "open":
                    self._message(payload)
            case causes.Cause() as cause:
                self._finish(cause)

    def _message(self, payload: bytes) -> None:
        call = self._calls.answered()
        if call is not None:
            self._to_tell.append(partial(self._answer, call, payload))
            self._send_next()
        elif is_error(payload):  # the server's last word before it closes
            self._refusal = payload
        else:
            self._line.close(causes.UNSOLICITED_ANSWER.code)
            self._finish(causes.UNSOLICITED_ANSWER)

    def _send_next(self) -> None:
        call = self._calls.next()
        if call is not None:
            self._line.send(call.text)

    def _tick_open(self, now: float) -> None:
        for call in self._calls.expire(now):
            error = RequestTimeout(call.op, call.timeout_s)
            self._to_tell.append(partial(_fail, call.future, error))
        match self._keepalive.tick(now):
            case "ping":
                self._line.ping()
            case "dead":
                self._finish(causes.KEEPALIVE_TIMED_OUT)

    def _finish(self, cause: causes.Cause) -> None:
        if self._state == "closed":
            return
        self._state = "closed"
        self._cause = self._cause or cause
        self._fail_all()
        self._to_tell.append(self._tell_never_opened)

    def _fail_all(self) -> None:
        for call in self._calls.fail():
            self._to_tell.append(partial(_fail, call.future, self._ending()))

    def _ending(self) -> OpenEnvError:
        """Why no request is taken: the server's own words if it had any."""
        said = None if self._refusal is None else error_of(self._refusal)
        if said is not None:
            return said
        if self._cause is None:
            return ConnectionClosed(1006, "the connection is not open")
        return self._cause.closed_error()

    # --- what is told -----------------------------------------------------------

    def _moved(self) -> bytes | None:
        """Tell what has happened, in order; return what is to be written."""
        output = self._line.output()
        to_tell, self._to_tell = self._to_tell, []
        for tell in to_tell:
            tell()
        return output or None

    def _tell_opened(self) -> None:
        opened, self._opened = self._opened, None
        _resolve(opened, None)

    def _tell_never_opened(self) -> None:
        opened, self._opened = self._opened, None
        if self._cause is not None:
            _fail(opened, self._cause.connect_failed())

    def _answer(self, call: Call, payload: bytes) -> None:
        if call.future is None:
            return
        try:
            answer = read_answer(call.op, payload)
            self._ignored += answer.ignored
            result = call.decoder.decode(answer)
        except BaseException as exc:  # noqa: BLE001 - foreign code; belongs to its caller
            _fail(call.future, exc)
        else:
            _resolve(call.future, result)


def _request_text(op: str, payload: object) -> bytes:
    if op not in REPLIES:
        msg = f"no request is called {op!r}"
        raise ValueError(msg)
    if op == "state":
        return b'{"type":"state"}'
    if isinstance(payload, Raw):
        data = payload.data
    else:
        writer = Writer(REQUEST)
        writer.write(payload, "data")
        data = writer.text()
    return b'{"type":"%b","data":%b}' % (op.encode(), data)


def _resolve(future: asyncio.Future[Any] | None, result: object) -> None:
    """Give a result; a future that was cancelled meanwhile stays as it is."""
    if future is not None and not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any] | None, error: BaseException) -> None:
    if future is None or future.done():
        return
    if isinstance(error, StopIteration):  # which no future takes
        instead = RuntimeError("the decoder of the answer raised StopIteration")
        instead.__cause__ = error
        error = instead
    future.set_exception(error)
