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
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from openenv.core.env_server._wire_errors import InvalidMessage, validation_errors
from openenv.core.env_server.serialization import deserialize_action, routes_by_type

_LIFTED = frozenset({"reward", "done"})
_MSGSPEC_PATH = re.compile(r" - at `\$?(.*)`$")


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
    if isinstance(observation, BaseModel):
        members = _dump(observation, _LIFTED)
    elif isinstance(observation, msgspec.Struct) or _is_dataclass(observation):
        members = _fields(observation)
        members.pop("reward", None)
        members.pop("done", None)
    elif dicts and isinstance(observation, Mapping):
        return _dict_parts(observation)
    else:
        name = type(observation).__name__
        message = f"'{name}' object has no attribute 'model_dump'"
        raise AttributeError(message)
    return Parts(
        members,
        getattr(observation, "reward", None),
        getattr(observation, "done", False),
        members.get("metadata") or None,
    )


def state_members(state: Any) -> Any:
    """Return the members of a state: upstream's ``model_dump()`` or ``dict()``."""
    if isinstance(state, BaseModel):
        return state.model_dump()
    if isinstance(state, msgspec.Struct) or _is_dataclass(state):
        return _fields(state)
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
            return checked(json.loads(raw))

    return ActionDecoder(from_json, checked)


def _msgspec(cls: type[Any]) -> ActionDecoder:
    decode = msgspec.json.Decoder(cls).decode

    def from_objects(value: Any) -> Any:
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise InvalidMessage([_msgspec_error(error, value)]) from error

    def from_json(raw: bytes) -> Any:
        try:
            return decode(raw)
        except msgspec.MsgspecError:
            return from_objects(json.loads(raw))

    return ActionDecoder(from_json, from_objects)


def _slow(from_objects: Callable[[Any], Any]) -> ActionDecoder:
    return ActionDecoder(lambda raw: from_objects(json.loads(raw)), from_objects)


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
    return {
        "type": "value_error",
        "loc": [int(part) if part.isdecimal() else part for part in location],
        "msg": _MSGSPEC_PATH.sub("", text),
        "input": value,
    }


# -- encoders --------------------------------------------------------------------


def _dump(model: BaseModel, exclude: frozenset[str]) -> dict[str, Any]:
    return model.model_dump(exclude=set(exclude))


def _is_dataclass(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields under their wire names; members are left as they are."""
    if isinstance(value, msgspec.Struct):
        cls = type(value)
        names = zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)
        return {wire: getattr(value, name) for wire, name in names}
    return {
        field.name: getattr(value, field.name) for field in _dataclass_fields(value)
    }


def _dataclass_fields(value: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(value)


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
