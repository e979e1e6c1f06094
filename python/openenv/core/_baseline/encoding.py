"""Python values to JSON text.

The JSON types are written here; every other value is given to ``openenv._plain``, and
what comes back is written in its place. A value's path goes along, so that an error, or
a float that JSON cannot say, is told with the place where it stands.
"""

# ruff: noqa: ANN401 - any value can be asked to be encoded

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pydantic_core

from openenv._plain import plain, plain_key, type_name
from openenv.errors import EncodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_DEPTH: Final = 200
"""Containers may nest this deep. Precedent: pydantic-core and jiter stop there too."""
_MAX_PATH_CHARS: Final = 200

Path = tuple[str | int, ...]
"""Keys as text and indexes."""


@dataclass(frozen=True, slots=True)
class Words:
    """Say how upstream spells it: its client is `json`, its server pydantic."""

    nonfinite: bool
    """Non-finite floats are ``NaN`` and ``Infinity``, not ``null``."""
    none_key: str


REQUEST: Final = Words(nonfinite=True, none_key="null")
JSON: Final = Words(nonfinite=False, none_key="null")
REPLY: Final = Words(nonfinite=False, none_key="None")


def json_encode(value: object) -> bytes:
    """Encode a value as compact JSON."""
    writer = Writer(JSON)
    writer.write(value, "data")
    return writer.text()


class Writer:
    """Write one JSON text, value by value.

    Args:
        words: What stands for that which JSON has no word for.
    """

    def __init__(self, words: Words) -> None:
        self.lossy: list[list[object]] = []
        """``[path, word]`` of each float that was written as ``null``."""
        self.used_iterator = False
        self._words = words
        self._pieces: list[str] = []
        self._root = ""

    def text(self) -> bytes:
        """Return what was written; lone surrogates are escaped."""
        return "".join(self._pieces).encode("utf-8", "backslashreplace")

    def put(self, text: str) -> None:
        """Write what is JSON already."""
        self._pieces.append(text)

    def write(self, value: object, root: str = "") -> None:
        """Write a value.

        Args:
            value: What to write.
            root: Names the value in paths.

        Raises:
            EncodeError: A value inside has no JSON form, or nests too deep.
        """
        self._root = root
        self._value(value, (), 0)

    def _value(self, value: Any, path: Path, depth: int) -> None:
        write = _BY_TYPE.get(type(value), Writer._other)
        write(self, value, path, depth)

    def _other(self, value: Any, path: Path, depth: int) -> None:
        """Write a subclass of a JSON type as its base, all else as `plain` has it."""
        self._check_depth(path, depth)
        for base in (str, int, float, dict, list, tuple):
            if isinstance(value, base):
                return _BY_TYPE[base](self, value, path, depth)
        self.used_iterator |= hasattr(value, "__next__")
        try:
            plainer = plain(value)
        except TypeError:
            raise self._refusal(path, type_name(value)) from None
        return self._value(plainer, path, depth + 1)

    def _word(self, value: bool | None, _path: Path, _depth: int) -> None:
        self.put(_WORDS[value])

    def _string(self, value: str, _path: Path, _depth: int) -> None:
        self.put(json.encoder.encode_basestring(value))

    def _int(self, value: int, path: Path, _depth: int) -> None:
        try:
            self.put(int.__repr__(value))
        except ValueError:
            what = "an integer of that many digits"
            raise self._refusal(path, what) from None

    def _float(self, value: float, path: Path, _depth: int) -> None:
        if math.isfinite(value):
            self.put(pydantic_core.to_json(float(value)).decode())
        elif self._words.nonfinite:
            self.put(_nonfinite_word(value))
        else:
            whole_path = [self._root, *path] if self._root else [*path]
            self.lossy.append([whole_path, _NONFINITE_TOLD[_nonfinite_word(value)]])
            self.put("null")

    def _items(self, items: Iterable[object], path: Path, depth: int) -> None:
        self._check_depth(path, depth)
        self.put("[")
        for index, item in enumerate(items):
            self.put("," if index else "")
            self._value(item, (*path, index), depth + 1)
        self.put("]")

    def _pairs(self, table: dict[object, object], path: Path, depth: int) -> None:
        self._check_depth(path, depth)
        self.put("{")
        for index, (key, value) in enumerate(table.items()):
            inner = (*path, _shown_key(key))
            self.put("," if index else "")
            self._key(key, inner, depth + 1)
            self.put(":")
            self._value(value, inner, depth + 1)
        self.put("}")

    def _key(self, key: Any, path: Path, depth: int) -> None:
        """Write text as it is, numbers, booleans and ``None`` as `json` writes them."""
        if isinstance(key, float) and not math.isfinite(key):
            self.put(f'"{_nonfinite_word(key)}"')
        elif key is None:
            self.put(f'"{self._words.none_key}"')
        elif isinstance(key, (int, float)):
            self.put('"')
            self._value(key, path, depth)
            self.put('"')
        else:
            self._string(self._key_text(key, path), path, depth)

    def _key_text(self, key: object, path: Path) -> str:
        if isinstance(key, str):
            return key
        try:
            return plain_key(key)
        except TypeError:
            raise self._refusal(path, type_name(key)) from None

    def _check_depth(self, path: Path, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise self._refusal(path, f"a value nested more than {MAX_DEPTH} deep")

    def _refusal(self, path: Path, what: str) -> EncodeError:
        shown = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in path)
        if len(shown) > _MAX_PATH_CHARS:  # a value that holds itself has no end
            shown = f"{shown[:_MAX_PATH_CHARS]}…"
        return EncodeError(f"{self._root}{shown}".removeprefix("."), what)


def _nonfinite_word(value: float) -> str:
    return json.dumps(float(value))


def _shown_key(key: object) -> str:
    try:
        text = str(key)
    except Exception:  # noqa: BLE001 - a key's own `__str__`, asked for a path only
        return "?"
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


_WORDS: Final = {None: "null", False: "false", True: "true"}

_NONFINITE_TOLD: Final = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}

_BY_TYPE: Final[dict[type, Callable[[Writer, Any, Path, int], None]]] = {
    bool: Writer._word,  # noqa: SLF001 - its own
    type(None): Writer._word,  # noqa: SLF001
    str: Writer._string,  # noqa: SLF001
    int: Writer._int,  # noqa: SLF001
    float: Writer._float,  # noqa: SLF001
    list: Writer._items,  # noqa: SLF001
    tuple: Writer._items,  # noqa: SLF001
    dict: Writer._pairs,  # noqa: SLF001
}
