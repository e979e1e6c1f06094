"""The server's side of the wire: requests told apart, replies written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from openenv.core._baseline.encoding import REPLY, Writer
from openenv.core._baseline.members import kind_of, regular_members

if TYPE_CHECKING:
    from collections.abc import Mapping

# Whether a request may have `data`: never, always, or as it likes.
_HAS_DATA: Final[Mapping[str, frozenset[bool]]] = {
    "close": frozenset({False}),
    "mcp": frozenset({True}),
    "reset": frozenset({False, True}),
    "state": frozenset({False}),
    "step": frozenset({True}),
}


@final
@dataclass(frozen=True, slots=True)
class Request:
    """One regular request of a client."""

    op: str
    data: bytes | None
    marked: bool
    __match_args__ = ("op", "data")


@final
@dataclass(frozen=True, slots=True)
class Irregular:
    """Any other message, as it came."""

    raw: bytes


def split_request(message: str | bytes) -> Request | Irregular:
    """Tell what a client's message asks, without parsing its ``data``."""
    raw = _utf8(message)
    try:
        pairs = regular_members(raw.decode())
    except ValueError:
        return Irregular(raw)
    texts = dict(pairs)
    op, data = kind_of(texts), texts.get("data")
    has_data = data is not None
    if (
        op is None
        or len(pairs) != 1 + has_data  # another key, or one that came twice
        or has_data not in _HAS_DATA.get(op, ())
        or (data is not None and not data.startswith("{"))
    ):
        return Irregular(raw)
    encoded = None if data is None else data.encode()
    return Request(op, encoded, marked=data is not None and '"__bytes__"' in data)


def observation_reply(
    observation: object,
    reward: object,
    done: object,
    metadata: object | None = None,
    *,
    nonfinite: bool = False,
    ext: dict[str, Any] | None = None,
) -> bytes:
    """Encode the answer to ``reset`` and ``step``."""
    values = {"observation": observation, "reward": reward, "done": done}
    if metadata:
        values["metadata"] = metadata
    writer = _begun("observation")
    for index, (name, value) in enumerate(values.items()):
        writer.put(f'{"," if index else "{"}"{name}":')
        writer.write(value, name)
    writer.put("}")
    return _ended(writer, nonfinite, ext)


def state_reply(
    state: object, *, nonfinite: bool = False, ext: dict[str, Any] | None = None
) -> bytes:
    """Encode the answer to ``state``."""
    writer = _begun("state")
    writer.write(state)
    return _ended(writer, nonfinite, ext)


def error_reply(data: object, *, ext: dict[str, Any] | None = None) -> bytes:
    """Encode an error; ``data`` has ``message``, ``code`` and what the code adds."""
    writer = _begun("error")
    writer.write(data)
    return _ended(writer, nonfinite=False, ext=ext)


def mcp_reply(data: object) -> bytes:
    """Encode the answer to ``mcp``: a JSON-RPC response."""
    writer = _begun("mcp")
    writer.write(data)
    return _ended(writer, nonfinite=False, ext=None)


def _begun(kind: str) -> Writer:
    writer = Writer(REPLY)
    writer.put(f'{{"type":"{kind}","data":')
    return writer


def _ended(writer: Writer, nonfinite: bool, ext: dict[str, Any] | None) -> bytes:
    told = dict(ext or {})
    if nonfinite and writer.lossy and not writer.used_iterator:
        told["nonfinite"] = list(writer.lossy)
    if told:
        writer.put(',"ext":')
        writer.write(told, "ext")
    writer.put("}")
    return writer.text()


def _utf8(message: object) -> bytes:
    if isinstance(message, bytes):
        return message
    if isinstance(message, str):
        passed = message.encode("utf-8", "surrogatepass")
        return passed.decode("utf-8", "replace").encode()
    msg = "a message is str or bytes"
    raise TypeError(msg)
