"""What a client asks for over HTTP, beside its WebSocket: rarely, and of one answer."""

# ruff: noqa: ANN401 - JSON is anything

from __future__ import annotations

import asyncio
import io
import json
import math
import re
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, Final, cast

from openenv.core._client.dial import open_streams, parse_address
from openenv.errors import ConnectFailed, LimitExceeded, RemoteProtocolError

if TYPE_CHECKING:
    import socket

    from openenv.core._client.dial import Address
    from openenv.core._client.settings import Settings

_OK: Final = 200
_MAX_HEAD_BYTES: Final = 65_536
_MAX_LINE_BYTES: Final = 8192
_CHUNK_BYTES: Final = 65_536
_STATUS: Final = re.compile(rb"HTTP/1\.\d (\d{3})\b")
_LENGTH: Final = re.compile(
    rb"(?:[^\r\n]+\r\n)+?content-length: *(\d{1,18}) *\r\n(?:[^\r\n]+\r\n)*\r\n",
    re.IGNORECASE,
)


async def get_json(settings: Settings, path: str) -> Any:
    """GET a path below the server's URL, with the settings' headers, proxy and TLS.

    Redirections are not followed, as the WebSocket follows none: what the headers hold
    is for this server alone.

    Args:
        settings: The client's; ``connect_timeout_s`` bounds the whole.
        path: Such as ``/schema``.

    Raises:
        ConnectFailed: The server was not reached, or answered an error (``status``).
        LimitExceeded: The answer is larger than the client takes.
        RemoteProtocolError: It is no JSON.
    """
    address = parse_address(settings.ws_url or "")
    url, target = _place(address, path)
    timeout_s = settings.connect_timeout_s
    try:
        async with asyncio.timeout(None if math.isinf(timeout_s) else timeout_s):
            answer = await _exchange(
                settings, address, _request(settings, address, target)
            )
    except TimeoutError as exc:
        raise ConnectFailed("no answer within the connect timeout", url) from exc
    except (OSError, UnicodeError) as exc:
        if isinstance(exc, ConnectFailed):
            raise
        raise ConnectFailed(str(exc) or type(exc).__name__, url) from exc
    return _read(answer, url)


async def ask_status(settings: Settings, path: str) -> int | None:
    """GET a path as `get_json` does, and return the status of the answer alone.

    None says that there was no answer in time, or none of HTTP.
    """
    timeout_s = settings.connect_timeout_s
    try:
        async with asyncio.timeout(None if math.isinf(timeout_s) else timeout_s):
            return status_of(await first_line(settings, path))
    except OSError:
        return None


async def first_line(settings: Settings, path: str) -> bytes:
    """GET a path as `get_json` does, and return the answer's first line.

    It ends sooner where the server closes, or where it is too long to be HTTP. Nothing
    but the caller bounds the time.

    Raises:
        OSError: The server was not reached.
    """
    address = parse_address(settings.ws_url or "")
    request = _request(settings, address, _place(address, path)[1])
    reader, writer = await open_streams(address, settings)
    line = b""
    try:
        writer.write(request)
        # Not `readline`, which raises for what is too long.
        while b"\n" not in line and len(line) < _MAX_LINE_BYTES:
            if not (more := await reader.read(_MAX_LINE_BYTES)):
                break
            line += more
    finally:
        writer.transport.abort()
    return line


def status_of(line: bytes) -> int | None:
    """Return the status that the first line of an answer tells, None if it is none."""
    found = _STATUS.match(line)
    return None if found is None else int(found[1])


async def _exchange(settings: Settings, address: Address, request: bytes) -> bytes:
    """Send a request and return the answer, head and all.

    It ends by its length or, where none is told, when the server closes.

    Raises:
        LimitExceeded: It is more than the client takes.
    """
    reader, writer = await open_streams(address, settings)
    try:
        writer.write(request)
        limit = settings.max_message_bytes
        answer = bytearray()
        end = limit + _MAX_HEAD_BYTES
        while len(answer) < end and (data := await reader.read(_CHUNK_BYTES)):
            answer += data
            length = _LENGTH.match(answer, 0, _MAX_HEAD_BYTES)
            if length is not None and int(length[1]) <= limit:
                end = length.end() + int(length[1])
    finally:
        writer.transport.abort()
    if len(answer) >= limit + _MAX_HEAD_BYTES:
        msg = "the server's answer is larger than max_message_size_mb says"
        raise LimitExceeded(msg, None, limit)
    return bytes(answer)


def _place(address: Address, path: str) -> tuple[str, str]:
    """Return the URL, for people to read, and the target of a path."""
    own_path, _, query = address.target.partition("?")
    place = own_path.removesuffix("/ws") + path
    scheme = "https" if address.secure else "http"
    url = f"{scheme}://{address.authority}{place}"
    return url, f"{place}?{query}" if query else place


def _request(settings: Settings, address: Address, target: str) -> bytes:
    headers = {"host": ("Host", address.authority)}
    if address.authorization is not None:
        headers["authorization"] = ("Authorization", address.authorization)
    headers |= {name.lower(): (name, value) for name, value in settings.headers}
    lines = [f"GET {target} HTTP/1.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.values()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _read(answer: bytes, url: str) -> Any:
    response = HTTPResponse(cast("socket.socket", _Received(answer)), method="GET")
    try:
        response.begin()
        body = response.read()
    except (HTTPException, OSError, ValueError) as exc:
        msg = f"it answered no HTTP, or only a part: {exc}"
        raise ConnectFailed(msg, url) from exc
    if response.status != _OK:
        msg = f"HTTP {response.status} {response.reason}"
        raise ConnectFailed(msg, url, response.status)
    try:
        return json.loads(body)
    except ValueError as exc:
        msg = f"{url} answered no JSON"
        raise RemoteProtocolError(msg) from exc


class _Received:
    """Be the socket that `http.client` reads an answer from, all of which is there."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def makefile(self, _mode: str) -> io.BytesIO:
        """Return the answer as a file."""
        return io.BytesIO(self._answer)
