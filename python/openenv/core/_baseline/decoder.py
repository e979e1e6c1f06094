"""How an answer becomes the result of a call.

A type's own JSON parser gets the text of its part of the answer. Objects are made of
the whole answer instead where something has to be put back that JSON could not say
(``ext.nonfinite``, bytes markers), or where only Python's ``json`` reads the text.
"""

# ruff: noqa: ANN401 - answers have the type that the caller's parser gives them

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

from openenv._plain import restore
from openenv.core._baseline.encoding import json_encode
from openenv.core._baseline.members import kind_of, members, regular_members, spliced
from openenv.errors import OpenEnvError, RemoteProtocolError, server_error

REPLIES: Final[Mapping[str, str]] = {
    "mcp": "mcp",
    "reset": "observation",
    "state": "state",
    "step": "observation",
}
"""What answers each request, unless it is an error."""

_LIFTED: Final = ("done", "reward", "metadata")
_NONFINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

FromJson = Callable[[bytes], object]
FromObjects = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Answer:
    """Be one answer: ``data`` as objects and, where a parser can use it, as text."""

    is_error: bool
    data: object
    text: str | None
    ignored: Sequence[str]


def read_answer(op: str, payload: bytes) -> Answer:
    """Read the answer to a request.

    Raises:
        RemoteProtocolError: It is no JSON object, or answers something else: no later
            answer could be trusted.
    """
    whole = _object(payload)
    kind = whole.get("type")
    if kind not in (REPLIES[op], "error"):  # it may be no text, and unhashable
        shown = json.dumps(kind if isinstance(kind, str) else "", ensure_ascii=False)
        msg = f"the server's answer to {op} has the type {shown}"
        raise RemoteProtocolError(msg)
    data, ext = restore(whole.get("data", {})), whole.get("ext")
    ignored = _put_back(data, ext) if isinstance(ext, dict) else ()
    text = None if "ext" in whole else _text_of_data(payload)
    return Answer(kind == "error", data, text, ignored)


@final
class Decoder:
    """How an answer's ``data`` becomes the result of a call. Make once, use often."""

    def __init__(
        self,
        shape: Literal["data", "result", "state"],
        from_json: FromJson | None = None,
        from_objects: FromObjects | None = None,
    ) -> None:
        self._shape = shape
        self._from_json = from_json
        self._from_objects = from_objects
        self._result: type = object
        self._lift: Sequence[str] = ()

    @staticmethod
    def data() -> Decoder:
        """Give the whole ``data`` value as Python objects."""
        return Decoder("data")

    @staticmethod
    def result(
        step_result: type,
        from_json: FromJson | None = None,
        from_objects: FromObjects | None = None,
        lift: Sequence[str] = (),
    ) -> Decoder:
        """Give a ``step_result`` with observation, reward, done and metadata."""
        unknown = [name for name in lift if name not in _LIFTED]
        if unknown:
            msg = f"lift takes done, reward and metadata, not {unknown[0]!r}"
            raise ValueError(msg)
        decoder = Decoder("result", from_json, from_objects)
        decoder._result = step_result
        decoder._lift = [name for name in _LIFTED if name in lift]
        return decoder

    @staticmethod
    def state(
        from_json: FromJson | None = None, from_objects: FromObjects | None = None
    ) -> Decoder:
        """Give the state made by ``from_json`` (None: a dict); see `result`."""
        return Decoder("state", from_json, from_objects)

    def decode(self, answer: Answer) -> Any:
        """Make the result of an answer.

        Raises:
            ServerError: It is an error.
            RemoteProtocolError: Its ``data`` has to be an object and is none.
            Exception: Whatever the type's own parser raises.
        """
        if answer.is_error:
            raise _error_of(answer.data)
        if self._shape == "data":
            return answer.data
        if self._shape == "state":
            return self._converted(answer.data, answer.text)
        data = answer.data
        if not isinstance(data, dict):
            raise _not_an_object()
        result: Any = object.__new__(self._result)  # its `__init__` may be anything
        result.observation = self._observation(data, answer.text)
        result.reward = data.get("reward")
        result.done = data.get("done", False)
        result.metadata = data.get("metadata")
        return result

    def _observation(self, data: Mapping[str, Any], text: str | None) -> object:
        """Make the observation, with the lifted members as fields of its own."""
        observation = data.get("observation", {})
        lifted = [name for name in self._lift if name in data]
        if isinstance(observation, dict) and self._from_json is not None:
            observation |= {name: data[name] for name in lifted}
        if text is None:
            return self._converted(observation, None)
        texts = dict(members(text))
        inner = texts.get("observation", "{}")
        if isinstance(observation, dict):
            inner = spliced(inner, [(name, texts[name]) for name in lifted])
        return self._converted(observation, inner)

    def _converted(self, value: object, text: str | None) -> object:
        if self._from_json is None:
            return value
        if text is not None:
            return self._from_json(text.encode())
        if self._from_objects is not None:
            return self._from_objects(value)
        return self._from_json(json_encode(value))


def error_of(payload: bytes) -> OpenEnvError | None:
    """Return what a regular error says; None: its ``data`` is no object."""
    data = json.loads(payload).get("data")
    return server_error(data) if isinstance(data, dict) else None


def is_error(payload: bytes) -> bool:
    """Tell whether a message is a regular error."""
    try:
        return kind_of(dict(regular_members(payload.decode()))) == "error"
    except ValueError:
        return False


def _object(payload: bytes) -> dict[str, Any]:
    try:
        whole = json.loads(payload)
    except (ValueError, RecursionError) as exc:
        msg = f"the server's answer is not JSON: {type(exc).__name__}: {exc}"
        raise RemoteProtocolError(msg) from exc
    if not isinstance(whole, dict):
        msg = "the server's answer is not a JSON object"
        raise RemoteProtocolError(msg)
    return whole


def _text_of_data(payload: bytes) -> str | None:
    """Return the text of ``data``; None where it can only be used as objects."""
    try:
        texts = dict(regular_members(payload.decode()))
    except ValueError:
        return None
    return None if b'"__bytes__"' in payload else texts.get("data", "{}")


def _put_back(data: object, ext: Mapping[str, Any]) -> Sequence[str]:
    """Put back what ``ext`` says beside ``data``; return the reset keys ignored."""
    if "exception" in ext and isinstance(data, dict):
        data["exception"] = ext["exception"]
    for entry in _list(ext.get("nonfinite")):
        _put_back_float(data, entry)
    ignored = _list(ext.get("ignored"))
    return ignored if all(isinstance(name, str) for name in ignored) else ()


def _put_back_float(data: Any, entry: object) -> None:
    """Set one float; an entry that points nowhere is passed over."""
    match entry:
        case [[*steps, last], str(word), *_] if word in _NONFINITE:
            with contextlib.suppress(LookupError, TypeError):
                for step in steps:
                    data = data[step]
                data[last] = _NONFINITE[word]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _error_of(data: object) -> OpenEnvError:
    return server_error(data) if isinstance(data, dict) else _not_an_object()


def _not_an_object() -> RemoteProtocolError:
    return RemoteProtocolError("the data of the server's answer is not a JSON object")
