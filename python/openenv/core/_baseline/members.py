"""JSON read by Python's ``json``, and objects split into the texts of their members.

A type's own parser (pydantic's, msgspec's) wants its JSON as it came: a number's digits
and a key that comes twice are lost in objects. Those parsers refuse a little that
``json`` takes; a text with any of it is *irregular* and is handled as objects:

* ``NaN`` and ``Infinity``,
* nesting deeper than 200 inside of one member,
* escaped lone surrogates.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from openenv.core._baseline.encoding import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def json_decode(data: bytes | str) -> Any:  # noqa: ANN401 - JSON has any type
    """Decode JSON: ``json.loads`` itself."""
    return json.loads(data)


def regular_members(text: str) -> list[tuple[str, str]]:
    """Split a text that is one JSON object, if every parser reads it alike.

    Args:
        text: What came.

    Returns:
        Keys, and the texts of their values, in the text's order.

    Raises:
        ValueError: It is no JSON object, or irregular.
    """
    try:
        value = _READER.decode(text)
    except RecursionError as exc:
        raise ValueError(_TOO_DEEP) from exc
    if not isinstance(value, dict):
        msg = "not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - the text's fault, no caller's
    json.dumps(value, ensure_ascii=False).encode()  # refuses lone surrogates
    if _depth(value) > 1 + MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    return members(text)


def members(text: str) -> list[tuple[str, str]]:
    """Split a JSON object that is known to be regular."""
    pairs = []
    at = text.index("{") + 1
    while found := _KEY.match(text, at):
        _, end = _READER.raw_decode(text, found.end())
        pairs.append((json.loads(found[1]), text[found.end() : end]))
        at = end
    return pairs


def kind_of(texts: Mapping[str, str]) -> str | None:
    """Return the ``type`` of a split message; None: it is no string, or not there."""
    text = texts.get("type", "")
    return json.loads(text) if text.startswith('"') else None


def spliced(text: str, added: Iterable[tuple[str, str]]) -> str:
    """Return the text of an object with members added at its end.

    Args:
        text: A regular JSON object.
        added: Names that need no escapes, and the texts of their values.
    """
    inner = text.strip()[1:-1].strip()
    pieces = [inner] if inner else []
    pieces += [f'"{name}":{value}' for name, value in added]
    return f"{{{','.join(pieces)}}}"


def _refuse(word: str) -> NoReturn:
    msg = f"{word} is no JSON"
    raise ValueError(msg)


def _depth(value: object) -> int:
    depth, layer = 0, [value]
    while layer := [each for each in layer if isinstance(each, (dict, list))]:
        depth += 1
        layer = [inner for each in layer for inner in _inside(each)]
    return depth


def _inside(holder: dict[str, object] | list[object]) -> Iterable[object]:
    return holder.values() if isinstance(holder, dict) else holder


_TOO_DEEP: Final = f"nested more than {MAX_DEPTH} deep"

# Integers are passed over, however long: `int` would refuse some.
_READER: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=len)

_KEY: Final = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')
