"""What a client class exchanges, read off ``EnvClient[Action, Observation, State]``.

====================== =========================================================
type argument          how an answer becomes it
====================== =========================================================
pydantic model         its validator, on the JSON bytes
msgspec struct(s)      msgspec's decoder, on the JSON bytes
dataclass, TypedDict   msgspec's decoder, on the JSON bytes
``dict``, ``Any``, …   Rust alone
any other type         pydantic's ``TypeAdapter``
====================== =========================================================

What msgspec does not know inside a type of its own (a model in a dataclass) is made by
pydantic, and a number it finds too long is decided again by Python's ``json``.

``done``, ``reward`` and ``metadata`` travel beside the observation; they are put into
it as well where its type has fields of these names. Codecs are made once a class.
"""

# ruff: noqa: ANN401 - types and decoded JSON are values here

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec
from pydantic import AliasChoices, AliasPath, BaseModel, TypeAdapter
from typing_extensions import is_typeddict

from openenv.core._native import native
from openenv.core.client_types import StepResult

_LIFTED: Final = ("done", "reward", "metadata")
_ALIAS_PATHS: Final = (AliasChoices, AliasPath)
_UNTYPED: Final = (Any, object, dict, Mapping, typing.Mapping)
_UNIONS: Final = (typing.Union, types.UnionType)

FromJson = Callable[[bytes], object]
FromObjects = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Shape:
    """Say how one type is made of JSON; both callables are None for plain dicts."""

    from_json: FromJson | None = None
    from_objects: FromObjects | None = None
    fields: frozenset[str] = frozenset()

    @property
    def lift(self) -> tuple[str, ...]:
        """Return the members beside the observation that it has fields for."""
        return tuple(name for name in _LIFTED if name in self.fields)


@dataclass(frozen=True, slots=True)
class Codec:
    """Hold both decoders of one client class, and their twins for hooks."""

    observation: Shape
    state: Shape
    result_decoder: native.Decoder
    state_decoder: native.Decoder


@functools.lru_cache(maxsize=1024)
def codec_of(observation: Any, state: Any) -> Codec:
    """Return the codec for an observation and a state type, made at first use.

    Args:
        observation: The second type argument of the client.
        state: The third.
    """
    seen, kept = shape_of(observation), shape_of(state)
    return Codec(
        observation=seen,
        state=kept,
        result_decoder=native.Decoder.result(
            StepResult, seen.from_json, seen.from_objects, seen.lift
        ),
        state_decoder=native.Decoder.state(kept.from_json, kept.from_objects),
    )


def shape_of(kind: Any) -> Shape:
    """Say how a type is made of JSON.

    Raises:
        TypeError: The type has no JSON form that could be decoded.
    """
    origin = get_origin(kind) or kind
    if _is_untyped(kind, origin):
        return Shape()
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        validator = kind.__pydantic_validator__
        return Shape(
            validator.validate_json, validator.validate_python, _field_names(kind)
        )
    if _is_for_msgspec(kind):
        convert = functools.partial(_convert, kind)
        return Shape(_from_json(kind, convert), convert, _field_names(kind))
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return Shape(adapter.validate_json, adapter.validate_python, _field_names(kind))


def payload_of(action: object) -> object:
    """Return what is encoded for an action without a ``_step_payload`` of its own.

    Raises:
        TypeError: The action is neither a mapping nor an object with fields.
    """
    if isinstance(action, (dict, BaseModel, msgspec.Struct)):
        return action
    if dataclasses.is_dataclass(action) and not isinstance(action, type):
        return action
    dump = getattr(action, "model_dump", None)
    if callable(dump):
        return dump()
    if hasattr(action, "__dict__"):
        return vars(action)
    try:
        return dict(action)  # type: ignore[call-overload]
    except (TypeError, ValueError) as exc:
        msg = (
            f"cannot make an action of {type(action).__name__}; give a model, "
            "a dataclass or a dict"
        )
        raise TypeError(msg) from exc


def as_dict(action: object) -> dict[str, Any]:
    """Return an action's fields as JSON objects, for a hook that adds to them."""
    payload = payload_of(action)
    if isinstance(payload, dict):
        return payload
    fields: dict[str, Any] = native.json_decode(native.json_encode(payload))
    return fields


def result_of(shape: Shape, data: Mapping[str, Any]) -> StepResult[Any]:
    """Make a result of an answer's ``data``, for a hook that calls its base."""
    observation: Any = data.get("observation", {})
    reward, done = data.get("reward"), bool(data.get("done", False))
    metadata = data.get("metadata")
    if shape.from_objects is not None and isinstance(observation, Mapping):
        beside = {name: data[name] for name in shape.lift if name in data}
        observation = shape.from_objects({**observation, **beside})
    return StepResult(observation, reward, done, metadata)


def state_of(shape: Shape, data: Mapping[str, Any]) -> Any:
    """Make a state of an answer's ``data``, for a hook that calls its base."""
    return data if shape.from_objects is None else shape.from_objects(data)


def _is_untyped(kind: Any, origin: Any) -> bool:
    if kind is None or isinstance(kind, TypeVar):
        return True
    return any(origin is untyped for untyped in _UNTYPED) or (
        isinstance(origin, type) and issubclass(origin, dict) and origin is not kind
    )


def _is_for_msgspec(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin in _UNIONS:  # pydantic knows no structs, msgspec tells them by their tag
        members = [kind for kind in get_args(kind) if kind is not types.NoneType]
        return any(map(_is_struct, members)) and all(map(_is_for_msgspec, members))
    # pydantic takes `typing.TypedDict` from Python 3.12 on only; its own dataclasses
    # have validators that msgspec does not know.
    if not isinstance(origin, type) or hasattr(origin, "__pydantic_validator__"):
        return False
    return (
        _is_struct(origin) or dataclasses.is_dataclass(origin) or is_typeddict(origin)
    )


def _is_struct(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, msgspec.Struct)


def _from_json(kind: Any, convert: FromObjects) -> FromJson:
    decode = msgspec.json.Decoder(kind, dec_hook=_foreign).decode

    def from_json(text: bytes) -> object:
        try:
            return decode(text)
        except msgspec.ValidationError as refusal:
            try:
                return convert(native.json_decode(text))  # 1e999 is inf to `json`
            except ValueError:
                raise refusal from None

    return from_json


def _convert(kind: Any, objects: Any) -> object:
    # Not strict: what came as JSON text (dates, base64) is still text here.
    return msgspec.convert(
        objects, kind, builtin_types=(bytes, bytearray), dec_hook=_foreign
    )


def _foreign(kind: Any, value: Any) -> object:
    """Make what msgspec has no name for (a model inside a dataclass, a path)."""
    return _adapter(kind).validate_python(value)


@functools.lru_cache(maxsize=1024)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _field_names(kind: Any) -> frozenset[str]:
    """Return a type's field names on the wire; for a union what all have."""
    origin = get_origin(kind) or kind
    if origin is typing.Annotated:
        return _field_names(get_args(kind)[0])
    if origin in _UNIONS:
        members = [_field_names(member) for member in get_args(kind)]
        return frozenset.intersection(*members)
    if not isinstance(origin, type):
        return frozenset()
    return _class_fields(origin)


def _class_fields(cls: type) -> frozenset[str]:
    if issubclass(cls, BaseModel):
        return frozenset(
            field.validation_alias or field.alias or name
            for name, field in cls.model_fields.items()
            if not isinstance(field.validation_alias, _ALIAS_PATHS)
        )
    if issubclass(cls, msgspec.Struct):
        return frozenset(field.encode_name for field in msgspec.structs.fields(cls))
    if dataclasses.is_dataclass(cls):
        return frozenset(field.name for field in dataclasses.fields(cls))
    return frozenset(getattr(cls, "__annotations__", ()))  # a TypedDict
