"""Actions from JSON, observations and states to plain members; made once a class.

Actions may be pydantic models, msgspec structs, dataclasses, dicts or anything a
pydantic ``TypeAdapter`` takes.  They are decoded from the raw bytes of the request;
what that refuses is decided again in Python mode, so that errors and acceptance are
those of upstream, which validates the output of ``json.loads``.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from openenv.core.env_server._wire_errors import (
    InvalidMessage,
    loads_part,
    too_deep,
    validation_errors,
)
from openenv.core.env_server.serialization import deserialize_action, routes_by_type

_LIFTED = {"reward", "done"}  # a set: pydantic takes no frozenset
_MSGSPEC_PATH = re.compile(r" - at `\$?(.*)`$")
_MSGSPEC_FIELD = re.compile(r"(?:missing required|contains unknown) field `([^`]*)`")


class ActionDecoder(NamedTuple):
    """How actions of one class are made; both raise `InvalidMessage`.

    Attributes:
        from_json: takes the raw JSON object.
        from_objects: takes the decoded one.
    """

    from_json: Callable[[bytes], Any]
    from_objects: Callable[[Any], Any]


class Parts(NamedTuple):
    """An observation taken apart for the wire."""

    observation: Any
    reward: Any
    done: Any
    metadata: Any


def action_decoder(action_cls: Any) -> ActionDecoder:
    """Make the decoder of a class; None and ``dict`` take any object."""
    if action_cls is None or action_cls is dict:
        return _slow(lambda value: value)
    if isinstance(action_cls, type) and issubclass(action_cls, BaseModel):
        return _pydantic(action_cls)
    if _is_msgspecs(action_cls):
        return _msgspec(action_cls)
    adapter = TypeAdapter(action_cls)
    return _slow(_checked(adapter.validate_python))


def observation_parts(observation: Any, *, dicts: bool = False) -> Parts:
    """Take an observation apart.

    ``reward``, ``done`` and ``metadata`` are read where they exist; metadata stays
    in the observation too (upstream 0.10).

    Args:
        observation: what ``reset`` or ``step`` returned.
        dicts: whether a plain dict counts as an observation.

    Raises:
        AttributeError: it is no observation (upstream's text).
    """
    cls: Any = type(observation)
    members_of = _observation_members(cls)
    if members_of is None:
        if dicts and isinstance(observation, Mapping):
            return _dict_parts(observation)
        message = f"'{cls.__name__}' object has no attribute 'model_dump'"
        raise AttributeError(message)
    members: Any = members_of(observation)
    kept = members if isinstance(members, dict) else vars(observation)
    return Parts(
        members,
        getattr(observation, "reward", None),
        getattr(observation, "done", False),
        kept.get("metadata") or None,
    )


def state_members(state: Any) -> Any:
    """Return the members of a state: upstream's ``model_dump()`` or ``dict()``."""
    cls: Any = type(state)
    fields = _field_names(cls)
    if fields is not None:
        return _members(state, fields)
    dump = getattr(state, "model_dump", None)
    if dump is not None:
        return dump()
    return dict(state) if state else {}


def json_schema(cls: Any) -> dict[str, Any]:
    """Return the JSON schema of an action, observation or state class."""
    if cls is None or cls is dict:
        return {"type": "object"}
    if isinstance(cls, type) and issubclass(cls, BaseModel):
        return cls.model_json_schema()
    if _is_msgspecs(cls):
        return _msgspec_schema(cls)
    return TypeAdapter(cls).json_schema()


def _is_msgspecs(cls: Any) -> bool:
    """Tell whether msgspec decodes the class: structs, TypedDicts, dataclasses.

    Pydantic's own dataclasses have validators that msgspec does not know.
    """
    if not isinstance(cls, type) or hasattr(cls, "__pydantic_validator__"):
        return False
    return (
        issubclass(cls, msgspec.Struct)
        or is_typeddict(cls)
        or dataclasses.is_dataclass(cls)
    )


# -- decoders --------------------------------------------------------------------


def _pydantic(cls: type[BaseModel]) -> ActionDecoder:
    def from_objects(value: Any) -> Any:
        return deserialize_action(value, cls)

    checked = _checked(from_objects)
    overridden = getattr(cls.model_validate, "__func__", None) is not getattr(
        BaseModel.model_validate, "__func__", None
    )
    if routes_by_type(cls) or overridden:
        return _slow(checked)
    validate_json = cls.__pydantic_validator__.validate_json

    def from_json(raw: bytes) -> Any:
        try:
            return validate_json(raw)
        except ValidationError:
            return checked(loads_part(raw))

    return ActionDecoder(from_json, checked)


def _msgspec(cls: type[Any]) -> ActionDecoder:
    decode = msgspec.json.Decoder(cls).decode

    def from_objects(value: Any) -> Any:
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise InvalidMessage([_msgspec_error(error, value)]) from error
        except RecursionError:
            raise too_deep() from None

    def from_json(raw: bytes) -> Any:
        try:
            return decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            return from_objects(loads_part(raw))

    return ActionDecoder(from_json, from_objects)


def _slow(from_objects: Callable[[Any], Any]) -> ActionDecoder:
    return ActionDecoder(lambda raw: from_objects(loads_part(raw)), from_objects)


def _checked(validate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            raise InvalidMessage(validation_errors(error)) from error

    return checked


def _msgspec_error(error: msgspec.ValidationError, value: object) -> dict[str, Any]:
    """Put msgspec's text into pydantic's form."""
    text = str(error)
    found = _MSGSPEC_PATH.search(text)
    path = found.group(1) if found else ""
    location = [part for part in re.split(r"[.\[\]]+", path) if part]
    field = _MSGSPEC_FIELD.search(text)  # named in the text, not in the path
    if field is not None:
        location.append(field.group(1))
    return {
        "type": "value_error",
        "loc": [int(part) if part.isdecimal() else part for part in location],
        "msg": _MSGSPEC_PATH.sub("", text),
        "input": value,
    }


# -- encoders --------------------------------------------------------------------


@lru_cache(maxsize=512)
def _observation_members(cls: Any) -> Callable[[Any], dict[str, Any]] | None:
    """Make what gives the members of observations of a class, without the lifted.

    Returns:
        None for a class that is none of observations.
    """
    if issubclass(cls, BaseModel):
        if cls.model_dump is not BaseModel.model_dump:
            return lambda model: model.model_dump(exclude=set(_LIFTED))
        # What model_dump() does, without looking its arguments over each time.
        to_python = cls.__pydantic_serializer__.to_python
        return lambda model: to_python(model, exclude=_LIFTED)
    names = _field_names(cls)
    if names is None:
        return None
    kept = tuple(pair for pair in names if pair[1] not in _LIFTED)
    return lambda value: _members(value, kept)


def _members(value: Any, fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the members of a struct or dataclass, as msgspec writes them."""
    members = {wire: getattr(value, name) for wire, name in fields}
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {} if config.tag_field is None else {config.tag_field: config.tag}
        given = members.items()
        return {**tag, **{k: v for k, v in given if v is not msgspec.UNSET}}
    return members


@lru_cache(maxsize=512)
def _field_names(cls: Any) -> tuple[tuple[str, str], ...] | None:
    """Return (wire name, attribute) of a struct's or dataclass's fields."""
    if issubclass(cls, msgspec.Struct):
        return tuple(
            zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)
        )
    if dataclasses.is_dataclass(cls):
        return tuple((field.name, field.name) for field in dataclasses.fields(cls))
    return None


def _dict_parts(observation: Mapping[str, Any]) -> Parts:
    members = {k: v for k, v in observation.items() if k not in _LIFTED}
    return Parts(
        members,
        observation.get("reward"),
        observation.get("done", False),
        members.get("metadata") or None,
    )


def _msgspec_schema(cls: Any) -> dict[str, Any]:
    """Return msgspec's schema with the class itself at the top, as pydantic does."""
    schema = msgspec.json.schema(cls)
    definitions: dict[str, Any] = schema.pop("$defs", {})
    name = str(schema.pop("$ref", "")).rpartition("/")[2]
    top: dict[str, Any] = definitions.get(name, schema)
    rest = {key: value for key, value in definitions.items() if key != name}
    return (
        {**top, "$defs": definitions}
        if _refers(rest | {name: top}, name)
        else ({**top, "$defs": rest} if rest else dict(top))
    )


def _refers(definitions: Mapping[str, Any], name: str) -> bool:
    return f'"#/$defs/{name}"' in json.dumps(definitions)
