from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, TypedDict, TypeVar

import msgspec
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field

from openenv.core._client.codec import as_dict, codec_of, payload_of, shape_of
from openenv.core._client.type_arguments import type_arguments
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericAction, GenericEnvClient

ObsT = TypeVar("ObsT")
ActT = TypeVar("ActT")
Other = TypeVar("Other")


class Action(BaseModel):
    move: str


class Observation(BaseModel):
    model_config = ConfigDict(extra="forbid")
    board: list[int]
    done: bool = False
    reward: float | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class Bare(BaseModel):
    model_config = ConfigDict(extra="forbid")
    board: list[int]


class Struct(msgspec.Struct):
    board: list[int]
    reward: float | None = None


@dataclasses.dataclass
class Plain:
    board: list[int]
    done: bool = False


class Typed(TypedDict):
    board: list[int]
    done: bool


class State(BaseModel):
    step_count: int


class Direct(EnvClient[Action, Observation, State]):
    pass


class Child(Direct):
    pass


class HalfOpen(EnvClient[Action, ObsT, State], Generic[ObsT]):
    pass


class Closed(HalfOpen[Struct]):
    pass


class Swapped(HalfOpen[Other], Generic[Other, ActT]):
    pass


class Nested(EnvClient[dict[str, ActT], list[ObsT], State], Generic[ObsT, ActT]):
    pass


class Written(EnvClient["Action", "Observation", "State"]):
    pass


class Mixin:
    pass


class Mixed(Mixin, Direct):
    pass


class Nothing(EnvClient):
    pass


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (Direct, (Action, Observation, State)),
        (Child, (Action, Observation, State)),
        (Closed, (Action, Struct, State)),
        (HalfOpen[Plain], (Action, Plain, State)),
        (Swapped[Plain, int], (Action, Plain, State)),
        (Nested[int, str], (dict[str, str], list[int], State)),
        (Written, (Action, Observation, State)),
        (Mixed, (Action, Observation, State)),
        (EnvClient[int, str, bytes], (int, str, bytes)),
        (GenericEnvClient, (dict[str, Any],) * 3),
        (Nothing, None),
        (int, None),
        ("text", None),
    ],
)
def test_type_arguments_are_found_through_the_bases(cls, expected):
    assert expected == type_arguments(cls, EnvClient)


def test_an_open_parameter_stays_a_type_variable():
    assert (Action, ObsT, State) == type_arguments(HalfOpen, EnvClient)


@pytest.mark.parametrize("kind", [Observation, Bare, Struct, Plain, Typed, list[int]])
def test_a_type_is_made_of_json_and_of_objects_alike(kind):
    shape = shape_of(kind)
    text = b"[1,2]" if kind == list[int] else b'{"board":[1,2],"done":true}'
    objects: Any = [1, 2] if kind == list[int] else {"board": [1, 2], "done": True}
    if kind is Bare:
        text, objects = b'{"board":[1,2]}', {"board": [1, 2]}

    assert shape.from_json is not None
    assert shape.from_objects is not None
    assert shape.from_json(text) == shape.from_objects(objects)


@pytest.mark.parametrize(
    ("kind", "lift"),
    [
        (Observation, ("done", "reward", "metadata")),
        (Bare, ()),
        (Struct, ("reward",)),
        (Plain, ("done",)),
        (Typed, ("done",)),
        (Annotated[Plain, "note"], ("done",)),
        (Observation | Plain, ("done",)),
        (dict[str, Any], ()),
        (list[int], ()),
    ],
)
def test_members_beside_are_lifted_where_the_type_has_fields_for_them(kind, lift):
    assert lift == shape_of(kind).lift


@pytest.mark.parametrize(
    "kind", [dict, dict[str, Any], Any, object, Mapping, Mapping[str, Any], ObsT, None]
)
def test_untyped_values_are_left_to_the_rust_decoder(kind):
    assert shape_of(kind).from_json is None


def test_bytes_survive_where_objects_are_converted():
    class Blob(msgspec.Struct):
        raw: bytes

    convert = shape_of(Blob).from_objects
    assert convert is not None

    assert Blob(raw=b"\xff\x00") == convert({"raw": b"\xff\x00"})


@pydantic.dataclasses.dataclass
class Checked:
    board: list[int]

    @pydantic.field_validator("board")
    @classmethod
    def _not_empty(cls, board):
        if not board:
            raise ValueError("the board has no fields")
        return board


def test_a_dataclass_of_pydantic_keeps_its_validators():
    shape = shape_of(Checked)
    assert shape.from_json is not None
    assert shape.from_objects is not None

    with pytest.raises(pydantic.ValidationError, match="the board has no fields"):
        shape.from_json(b'{"board":[]}')
    with pytest.raises(pydantic.ValidationError, match="the board has no fields"):
        shape.from_objects({"board": []})


@dataclasses.dataclass
class Around:
    action: Action
    path: PurePosixPath


def test_what_msgspec_does_not_know_is_made_by_pydantic():
    shape = shape_of(Around)
    assert shape.from_json is not None
    assert shape.from_objects is not None
    made = Around(Action(move="up"), PurePosixPath("/a"))

    assert made == shape.from_json(b'{"action":{"move":"up"},"path":"/a"}')
    assert made == shape.from_objects({"action": {"move": "up"}, "path": "/a"})
    with pytest.raises(msgspec.ValidationError, match=r"move(.|\n)*at `\$\.action`"):
        shape.from_json(b'{"action":{"move":5},"path":"/a"}')


class Left(msgspec.Struct, tag=True):
    x: int


class Right(msgspec.Struct, tag=True):
    x: int


def test_a_refusal_is_told_in_the_words_of_the_first_parser():
    class Blob(msgspec.Struct):
        raw: bytes
        number: int

    from_json = shape_of(Blob).from_json
    assert from_json is not None

    with pytest.raises(msgspec.ValidationError, match=r"`\$\.number`"):
        from_json(b'{"raw":"YWI=","number":"x"}')


def test_structs_in_a_union_are_told_by_their_tag():
    shape = shape_of(Left | Right | None)
    assert shape.from_json is not None
    assert shape.from_objects is not None

    assert Right(1) == shape.from_json(b'{"type":"Right","x":1}')
    assert Left(1) == shape.from_objects({"type": "Left", "x": 1})
    assert shape.from_json(b"null") is None


def test_codecs_are_made_once_a_pair_of_types():
    assert codec_of(Observation, State) is codec_of(Observation, State)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action(move="left"), {"move": "left"}),
        (Struct(board=[1]), {"board": [1], "reward": None}),
        (Plain(board=[1]), {"board": [1], "done": False}),
        ({"move": 1}, {"move": 1}),
        (GenericAction(move=1), {"move": 1}),
        ([("move", 1)], {"move": 1}),
    ],
)
def test_actions_of_every_kind_become_objects(action, expected):
    assert expected == as_dict(action)


def test_an_object_with_attributes_is_sent_as_its_attributes():
    class Loose:
        def __init__(self):
            self.move = "up"

    class Dumps:
        def model_dump(self):
            return {"move": "down"}

    assert {"move": "up"} == payload_of(Loose())
    assert {"move": "down"} == payload_of(Dumps())


def test_what_is_no_action_is_refused_by_name():
    with pytest.raises(TypeError, match="cannot make an action of int"):
        payload_of(5)


async def test_a_client_that_says_nothing_says_what_to_write():
    client = Nothing("http://127.0.0.1:9")

    with pytest.raises(TypeError, match=r"write `class Nothing\(EnvClient\[MyAction"):
        await client.reset()
    with pytest.raises(TypeError, match="override _parse_state"):
        await client.state()


async def test_an_open_generic_client_says_what_to_write():
    with pytest.raises(TypeError, match="HalfOpen does not say what it exchanges"):
        await HalfOpen("http://127.0.0.1:9").reset()


def test_hooks_may_call_their_base():
    client = Direct("http://127.0.0.1:9")
    payload = {"observation": {"board": [1]}, "reward": 0.5, "done": True}

    result = client._parse_result({**payload, "metadata": {"k": 1}})

    seen = Observation(board=[1], done=True, reward=0.5, metadata={"k": 1})
    assert StepResult(seen, 0.5, True, {"k": 1}) == result
    assert {"move": "x"} == client._step_payload(Action(move="x"))
    assert State(step_count=2) == client._parse_state({"step_count": 2})
    assert {"a": 1} == GenericEnvClient("h")._parse_state({"a": 1})
