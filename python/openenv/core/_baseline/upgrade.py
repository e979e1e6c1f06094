"""The HTTP head that asks for a WebSocket, and the head that answers it (RFC 6455 §4).

The answer's status is looked at here, as soon as its head is there: a refusal's body is
not waited for. Only a head that agrees is given to ``websockets``, which checks it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openenv.core._baseline.causes import Cause, failed_upgrade, refused
from openenv.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_HEAD_BYTES: Final = 64 << 10  # as uvicorn's `h11`
_START: Final = b"HTTP/1."
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})(?: [^\n]*)?\r?\n")
_TOKEN: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_HOST: Final = re.compile(r"[!-~]+")
_TARGET: Final = re.compile(r"/[!-~]*")
_RESERVED: Final = re.compile(
    r"sec-websocket-.*|connection|content-length|host|transfer-encoding|upgrade",
    re.IGNORECASE,
)


def upgrade_request(
    host: str, target: str, headers: Sequence[tuple[str, str]], key: str
) -> bytes:
    """Compose the request.

    Args:
        host: Value of the ``Host`` header.
        target: Path and query, escaped.
        headers: Further request headers.
        key: Value of ``Sec-WebSocket-Key``.

    Raises:
        LocalProtocolError: One of them cannot be sent, or a header is one of those
            that the upgrade itself writes.
    """
    if not _HOST.fullmatch(host) or re.search(r"[/?#]", host):
        raise LocalProtocolError("host that cannot be sent")
    if not _TARGET.fullmatch(target) or "#" in target:
        raise LocalProtocolError("target that does not begin with / or must be escaped")
    for name, value in headers:
        _check_header(name, value)
    fields = [
        ("Host", host),
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", key),
        ("Sec-WebSocket-Version", "13"),
        *headers,
    ]
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


class AnswerHead:
    """Collect the head of the server's answer."""

    def __init__(self) -> None:
        self._bytes = b""

    def receive(self, data: bytes) -> bytes | Cause | None:
        """Take what was read.

        Returns:
            All that came, once the server has agreed; why the upgrade failed; None
            as long as the head is not there.
        """
        self._bytes += data
        if not self._bytes.startswith(_START[: len(self._bytes)]):
            return failed_upgrade("not an HTTP/1.1 head")
        blank_line = _BLANK_LINE.search(self._bytes)
        head_bytes = blank_line.end() if blank_line else len(self._bytes)
        if head_bytes > _MAX_HEAD_BYTES:
            return failed_upgrade(
                f"HTTP head longer than the limit of {_MAX_HEAD_BYTES} bytes"
            )
        return self._judged() if blank_line else None

    def _judged(self) -> bytes | Cause:
        status = _STATUS.match(self._bytes)
        if status is None:
            return failed_upgrade("not an HTTP/1.1 head")
        return self._bytes if status[1] == b"101" else refused(int(status[1]))


def _check_header(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        msg = f"header with a character that cannot be sent: {name!r}"
        raise LocalProtocolError(msg)
    if _RESERVED.fullmatch(name):
        msg = f"header that the upgrade itself writes: {name!r}"
        raise LocalProtocolError(msg)
