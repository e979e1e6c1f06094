"""Frames and heads as bytes, right or wrong: what no library would send."""

from __future__ import annotations

import base64
import itertools
import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from random import Random

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
FINAL = 0x80
MASKED = 0x80
NO_KEY = bytes(4)  # a mask that changes nothing, for payloads of many MiB
KEY = b"\x37\xfa\x21\x3d"  # RFC 6455 §5.7

UPGRADE_HEADERS = {
    "Host": "127.0.0.1",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode(),
    "Sec-WebSocket-Version": "13",
}


class Received(NamedTuple):
    """A frame that came in, its payload unmasked."""

    opcode: int
    payload: bytes


def frame(  # noqa: PLR0913 - each is a field of the frame
    opcode: int,
    payload: bytes = b"",
    *,
    final: bool = True,
    reserved: int = 0,
    key: bytes | None = None,
    declared: int | None = None,
    width: int | None = None,
) -> bytes:
    """Write a frame by RFC 6455 §5.2.

    Args:
        opcode: Four bits.
        payload: What follows the header.
        final: The FIN bit.
        reserved: The three reserved bits, RSV1 as 4.
        key: The mask; None writes an unmasked frame.
        declared: The length in the header, if it is not the payload's.
        width: Bytes of the extended length: 0, 2 or 8; the shortest by default.
    """
    length = len(payload) if declared is None else declared
    if width is None:
        width = 0 if length < 126 else 2 if length < 1 << 16 else 8
    short = {0: length, 2: 126, 8: 127}[width]
    first = (FINAL if final else 0) | reserved << 4 | opcode
    second = (0 if key is None else MASKED) | short
    header = bytes([first, second])
    header += length.to_bytes(width, "big") if width else b""
    return header + (payload if key is None else key + xor(payload, key))


def xor(payload: bytes, key: bytes) -> bytes:
    """Mask or unmask."""
    if key == NO_KEY:
        return payload
    return bytes(a ^ b for a, b in zip(payload, itertools.cycle(key), strict=False))


def message(value: object, *, key: bytes | None = None) -> bytes:
    """Write a text frame that holds JSON."""
    return frame(TEXT, json.dumps(value).encode(), key=key)


def upgrade_request(target: str = "/ws", **changes: str | None) -> bytes:
    """Write an upgrade request; a change of None leaves the header out."""
    replaced = {
        name.replace("_", "-").lower(): value for name, value in changes.items()
    }
    lines = [f"GET {target} HTTP/1.1"]
    for name, value in UPGRADE_HEADERS.items():
        value = replaced.pop(name.lower(), value)  # noqa: PLW2901 - the new value
        lines += [] if value is None else [f"{name}: {value}"]
    lines += [f"{name}: {value}" for name, value in replaced.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def read_frame(reader: asyncio.StreamReader) -> Received:
    """Read the next frame of either side."""
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length > 125:
        length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8))
    key = await reader.readexactly(4) if second & MASKED else NO_KEY
    return Received(first & 0x0F, xor(await reader.readexactly(length), key))


def close_code(received: Received) -> int:
    """Return the code in a Close frame, 1005 if it has none."""
    return int.from_bytes(received.payload[:2]) if received.payload else 1005


def random_frames(random: Random, count: int, *, key: bytes | None) -> Iterator[bytes]:
    """Yield legal frames that end no message, and as the last one random bytes.

    All of them are parsed, since only the last may end the connection. Its first byte
    is often a legal one, so that what follows matters.
    """
    opcode = TEXT
    for _ in range(count - 1):
        payload = bytes(random.choices(range(0x20, 0x7F), k=random.randrange(40)))
        if random.random() < 0.5:
            yield frame(random.choice((PING, PONG)), payload, key=key)
        else:
            yield frame(opcode, payload, final=False, key=key)
            opcode = CONTINUATION
    first = random.choice(
        (opcode, FINAL | opcode, FINAL | CLOSE, random.randrange(256))
    )
    lengths = random.choice((126, 127, random.randrange(128)))
    second = lengths | random.choice((0, MASKED))
    yield bytes([first, second]) + random.randbytes(random.randrange(60))
