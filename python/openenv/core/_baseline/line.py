"""One WebSocket without a socket: bytes in, messages out. ``websockets`` knows the RFC.

What it leaves to its caller is done here: fragments are joined, texts are checked to be
UTF-8, and its exceptions become causes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import WebSocketURI

from openenv.core._baseline.causes import (
    Cause,
    broken_rule,
    closed_by_peer,
    failed_upgrade,
    message_too_big,
)
from openenv.core._baseline.upgrade import AnswerHead, upgrade_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NOT_UTF8: Final = "text that is not valid UTF-8"


@dataclass(frozen=True, slots=True)
class Opened:
    """The server has agreed to the upgrade; names of ``headers`` are in lower case."""

    headers: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Message:
    """The server has sent a whole message."""

    payload: bytes


Heard = Opened | Message | Cause
"""What can be heard on a line; a cause is the last of it."""


class Line:
    """Be one WebSocket, from the upgrade to the Close frame.

    Args:
        host: Value of the ``Host`` header.
        target: Path and query of the upgrade request.
        headers: Further request headers.
        max_message_bytes: Longest message taken from the server.

    Raises:
        LocalProtocolError: Something of the request cannot be sent.
    """

    def __init__(
        self,
        host: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        max_message_bytes: int,
    ) -> None:
        uri = WebSocketURI(secure=False, host=host, port=80, path=target, query="")
        self._protocol = ClientProtocol(uri, max_size=max_message_bytes)
        self._max_message_bytes = max_message_bytes
        self._answer: AnswerHead | None = AnswerHead()
        self._message = bytearray()
        self._kind = Opcode.TEXT
        self.request = upgrade_request(host, target, headers, self._protocol.key)
        """The upgrade request."""

    def receive(self, data: bytes) -> Iterator[Heard]:
        """Take what was read and tell what was heard."""
        if self._answer is not None:
            answer = self._answer.receive(data)
            if answer is None:
                return
            self._answer = None
            if isinstance(answer, Cause):
                yield answer
                return
            data = answer
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            heard = self._heard(event)
            if heard is not None:
                yield heard
        broken = self._broken()
        if broken is not None:
            yield broken

    def send(self, text: bytes) -> None:
        """Say one text message, unless either side has said Close."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_text(text)

    def ping(self) -> None:
        """Ask for a sign of life."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_ping(b"")

    def close(self, code: int) -> None:
        """Say the Close frame; nothing is said after it."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code)

    def output(self) -> bytes:
        """Take the bytes to write now."""
        return b"".join(self._protocol.data_to_send())

    def _heard(self, event: object) -> Heard | None:
        if isinstance(event, Response):
            if self._protocol.handshake_exc is not None:
                return None  # told by `_broken`
            pairs = event.headers.raw_items()
            return Opened([(name.lower(), value) for name, value in pairs])
        assert isinstance(event, Frame)
        if event.opcode is Opcode.CLOSE:
            close = self._protocol.close_rcvd
            assert close is not None  # it came with this frame
            return closed_by_peer(int(close.code), close.reason)
        if event.opcode in {Opcode.PING, Opcode.PONG}:
            return None
        return self._data(event)

    def _data(self, frame: Frame) -> Heard | None:
        """Join a frame to its message; return that when it is whole."""
        if frame.opcode is not Opcode.CONT:
            self._kind = frame.opcode
        self._message += frame.data
        if not frame.fin:
            return None
        payload, self._message = bytes(self._message), bytearray()
        if self._kind is Opcode.TEXT and not _is_utf8(payload):
            self._protocol.fail(1007, _NOT_UTF8)
            return broken_rule(1007, _NOT_UTF8)
        return Message(payload)

    def _broken(self) -> Cause | None:
        """Return what ``websockets`` found wrong, if it did."""
        failed = self._protocol.handshake_exc
        if failed is not None:
            return failed_upgrade(str(failed.__cause__ or failed))
        close, broken = self._protocol.close_sent, self._protocol.parser_exc
        if broken is None or close is None:
            return None
        if isinstance(broken, PayloadTooBig):
            return message_too_big(self._max_message_bytes)
        not_utf8 = isinstance(broken, UnicodeDecodeError)
        return broken_rule(int(close.code), _NOT_UTF8 if not_utf8 else str(broken))


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True
