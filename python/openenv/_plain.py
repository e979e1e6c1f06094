"""Values for which JSON has no word, said in words it has.

The encoder of ``openenv._rust`` writes the JSON types itself and asks
`plain` for everything else, one value at a time: what comes back is encoded
in its place, so nested values are asked for in their turn and an error names
the full path. Nothing heavy is imported: a type's package is in
``sys.modules`` already if one of its values is here.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BYTES_MARKER = "__bytes__"
"""The only key of the object that stands for ``bytes``; its value is base64."""


def plain(value: object) -> object:
    """Give a value in the JSON types, its members as they are.

    Args:
        value: Anything that is not already a JSON type.

    Returns:
        A ``str``, number, list or dict to encode in its place. Sets become
        lists, times ISO 8601 text, arrays nested lists (C order), ``bytes``
        an object ``{"__bytes__": "<base64>"}``.

    Raises:
        TypeError: No JSON form is known for the type.
    """
    for kind in type(value).__mro__:
        convert = _BY_TYPE.get(kind)
        if convert is not None:
            return convert(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return _from_package(value)


def restore(value: object) -> object:
    """Turn every bytes marker inside decoded JSON back into ``bytes``.

    Args:
        value: Decoded JSON; its lists and dicts are changed in place.

    Returns:
        The value, or the ``bytes`` it stands for. A marker whose base64 is
        broken stays as it is.
    """
    if isinstance(value, list):
        value[:] = [restore(item) for item in value]
    elif isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get(BYTES_MARKER), str):
            return _unmarked(value)
        for key, item in value.items():
            value[key] = restore(item)
    return value


def _unmarked(value: dict[str, str]) -> object:
    try:
        return base64.b64decode(value[BYTES_MARKER], validate=True)
    except ValueError:
        return value


def _from_package(value: Any) -> object:  # noqa: ANN401 - told by its package
    root = type(value).__module__.partition(".")[0]
    if root == "numpy":
        return value.tolist()
    if hasattr(value, "__pydantic_serializer__"):
        return value.__pydantic_serializer__.to_python(value)
    if root in _TENSOR_PACKAGES and callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise TypeError(type_name(value))


def type_name(value: object) -> str:
    """Name a value's type as an error shows it, builtins without their module."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _marked(value: bytes | bytearray | memoryview) -> dict[str, str]:
    return {BYTES_MARKER: base64.b64encode(value).decode("ascii")}


def _struct(value: object) -> object:
    return {
        field.encode_name: getattr(value, field.name)
        for field in msgspec.structs.fields(cast("msgspec.Struct", value))
    }


def _duration(value: dt.timedelta) -> str:
    return cast("str", msgspec.to_builtins(value))


_TENSOR_PACKAGES = frozenset({"torch", "jax", "jaxlib", "tensorflow"})

_BY_TYPE: Mapping[type, Callable[[Any], object]] = {
    bytes: _marked,
    bytearray: _marked,
    memoryview: _marked,
    set: list,
    frozenset: list,
    enum.Enum: lambda value: value.value,
    dt.datetime: lambda value: value.isoformat(),
    dt.date: lambda value: value.isoformat(),
    dt.time: lambda value: value.isoformat(),
    dt.timedelta: _duration,
    uuid.UUID: str,
    decimal.Decimal: str,
    PurePath: str,
    msgspec.Struct: _struct,
}
