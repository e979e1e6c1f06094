"""Values for which JSON has no word, said in words it has.

The encoder of ``openenv._rust`` writes the JSON types itself and asks
`plain` for everything else, one value at a time: what comes back is encoded
in its place, so nested values are asked for in their turn and an error names
the full path. Nothing heavy is imported: a type's package is in
``sys.modules`` already if one of its values is here.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pydantic
import pydantic_core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BYTES_MARKER = "__bytes__"
"""The only key of the object that stands for ``bytes``; its value is base64."""


def plain(value: object) -> object:
    """Give a value in the JSON types, its members as they are.

    Args:
        value: Anything that is not already a JSON type.

    Returns:
        What to encode in its place. Sets, queues and iterators become lists, arrays
        nested lists (C order), ``bytes`` an object ``{"__bytes__": "<base64>"}``;
        times, URLs, addresses, numbers and the like are spelled as pydantic spells
        them, which is how upstream's server does.

    Raises:
        TypeError: No JSON form is known for the type.
    """
    for kind in type(value).__mro__:
        convert = _BY_TYPE.get(kind)
        if convert is not None:
            return convert(value)
    if _is_array(value):
        return _array(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _set_fields(value)
    if hasattr(value, "__next__"):
        return list(cast("Any", value))
    try:
        return pydantic_core.to_jsonable_python(value)
    except pydantic_core.PydanticSerializationError:
        raise TypeError(type_name(value)) from None


def plain_key(key: object) -> str:
    """Give the text of a dict's key that is neither text nor a number of Python's.

    Raises:
        TypeError: No text is known for the type, or for this value (``bytes`` that
            are not UTF-8).
    """
    simple = _array(key) if _is_array(key) else key  # a numpy scalar
    try:
        (text,) = pydantic_core.to_jsonable_python({simple: None})
    except (pydantic_core.PydanticSerializationError, UnicodeDecodeError):
        raise TypeError(type_name(key)) from None
    return cast("str", text)


def restore(value: object) -> object:
    """Turn every bytes marker inside decoded JSON back into ``bytes``.

    Args:
        value: Decoded JSON of any depth; its lists and dicts are changed in place.

    Returns:
        The value, or the ``bytes`` it stands for. A marker whose base64 is
        broken stays as it is.
    """
    top = [value]
    waiting: list[list[Any] | dict[str, Any]] = [top]
    while waiting:  # no recursion: Python's own parser takes what is deeper than that
        holder = waiting.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for place, item in items:
            restored = _unmarked(item)
            if restored is not item:
                cast("Any", holder)[place] = restored
            elif isinstance(item, (dict, list)):
                waiting.append(item)
    return top[0]


def _unmarked(value: object) -> object:
    if not isinstance(value, dict) or len(value) != 1:
        return value
    text = value.get(BYTES_MARKER)
    if not isinstance(text, str):
        return value
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return value


def _is_array(value: object) -> bool:
    if not callable(getattr(value, "tolist", None)):
        return False
    roots = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    return not roots.isdisjoint(_ARRAY_PACKAGES)


def _array(value: Any) -> object:  # noqa: ANN401 - told by its package
    plainer: Any = value.tolist()
    if type(plainer) is not type(value):
        return plainer
    # numpy has no Python number for some of its own (longdouble, clongdouble).
    return complex(plainer) if hasattr(type(value), "__complex__") else float(plainer)


def type_name(value: object) -> str:
    """Name a value's type as an error shows it, builtins without their module."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _marked(value: bytes | bytearray | memoryview) -> dict[str, str]:
    # base64 takes no view with gaps or in Fortran's order; `bytes` copies its items.
    data = bytes(value) if isinstance(value, memoryview) else value
    return {BYTES_MARKER: base64.b64encode(data).decode("ascii")}


def _model(value: pydantic.BaseModel) -> object:
    return value.__pydantic_serializer__.to_python(value)


def _set_fields(value: Any) -> object:  # noqa: ANN401 - any dataclass
    """Give a dataclass's fields that have a value, as pydantic does."""
    names = (field.name for field in dataclasses.fields(value))
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _struct(value: Any) -> object:  # noqa: ANN401 - any struct
    """Give what `msgspec.json.encode` writes: its options are on the class."""
    config = value.__struct_config__
    values = [getattr(value, name) for name in value.__struct_fields__]
    if config.array_like:
        return values if config.tag is None else [config.tag, *values]
    pairs = zip(value.__struct_encode_fields__, values, strict=True)
    members = {name: each for name, each in pairs if each is not msgspec.UNSET}
    if config.omit_defaults:
        for field in msgspec.structs.fields(value):
            if _is_default(field, members.get(field.encode_name)):
                members.pop(field.encode_name, None)
    return members if config.tag is None else {config.tag_field: config.tag, **members}


def _is_default(field: msgspec.structs.FieldInfo, value: object) -> bool:
    """Tell whether ``omit_defaults`` leaves a value out, as msgspec decides it."""
    if field.default_factory is msgspec.NODEFAULT:
        return value is field.default
    kind = type(value)
    return kind is field.default_factory and kind in _EMPTY_DEFAULTS and not value


_ARRAY_PACKAGES = frozenset({"numpy", "torch", "jax", "jaxlib", "tensorflow"})

_EMPTY_DEFAULTS: frozenset[type] = frozenset({list, dict, set})

_BY_TYPE: Mapping[type, Callable[[Any], object]] = {
    bytes: _marked,
    bytearray: _marked,
    memoryview: _marked,
    set: list,
    frozenset: list,
    collections.deque: list,
    enum.Enum: lambda value: value.value,
    PurePath: str,
    msgspec.Struct: _struct,
    pydantic.BaseModel: _model,
}
