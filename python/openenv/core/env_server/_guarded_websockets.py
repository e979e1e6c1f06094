"""uvicorn's WebSocket protocol, with what it lacks against hostile clients.

* A head that the `websockets` library refuses (too many or too long fields, another
  method than GET, a body) gets its answer; uvicorn leaves the client without one and
  the connection open.
* Pongs to a client that reads nothing do not pile up: behind a full transport only
  the latest is kept, which RFC 6455 §5.5.3 allows.
* Fragments are joined as they come; kept apart, each takes some forty bytes more than
  it has, and an empty one counts nothing against the longest message.
* A client that sends without a pause is read once a turn of the loop; uvloop reads it
  up to 32 times, and thousands of tiny frames a read keep all others waiting.
"""

from __future__ import annotations

from typing import Final

from typing_extensions import override
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from websockets.frames import Frame, Opcode

# Below this a read was not cut off by its buffer, and there is no more to read.
_BIG_READ_BYTES: Final = 1 << 16
# For heads that the library refuses without a word.
_BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class GuardedWebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection of a client that may be hostile; made by uvicorn."""

    _late_pong = b""
    _opcode: Opcode
    _gathered: bytearray

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.close_sent:
            self._refuse_head()
        elif len(data) >= _BIG_READ_BYTES and self._may_read():
            self.transport.pause_reading()
            self.loop.call_soon(self._read_on)

    @override
    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        elif frames := self.conn.data_to_send():
            self._late_pong = frames[-1]

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        late, self._late_pong = self._late_pong, b""
        if late:
            self.transport.write(late)

    @override
    def handle_text(self, event: Frame) -> None:
        if event.fin:
            super().handle_text(event)
        else:
            self._opcode, self._gathered = event.opcode, bytearray(event.data)

    @override
    def handle_bytes(self, event: Frame) -> None:
        if event.fin:
            super().handle_bytes(event)
        else:
            self._opcode, self._gathered = event.opcode, bytearray(event.data)

    @override
    def handle_cont(self, event: Frame) -> None:
        self._gathered += event.data
        if not event.fin:
            return
        whole = Frame(self._opcode, bytes(self._gathered))
        self._gathered = bytearray()
        if whole.opcode is Opcode.TEXT:
            super().handle_text(whole)
        else:
            super().handle_bytes(whole)

    def _read_on(self) -> None:
        if self._may_read():
            self.transport.resume_reading()

    def _may_read(self) -> bool:
        return not self.read_paused and not self.transport.is_closing()

    def _refuse_head(self) -> None:
        self.handshake_complete = self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()) or _BAD_REQUEST)
        self.transport.close()
