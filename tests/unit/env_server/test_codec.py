"""Actions, observations and states of every kind of class."""

from __future__ import annotations

import dataclasses
import enum
from collections import OrderedDict
from typing import Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, field_validator

from openenv.core.env_server._codec import (
    action_decoder,
    json_schema,
    observation_parts,
    state_members,
)
from openenv.core.env_server._wire_errors import InvalidMessage
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.structs import ActionStruct, ObservationStruct, StateStruct


class Side(enum.StrEnum):
    LEFT = "left"


class Move(Action):
    side: Side
    pair: tuple[int, int] = (0, 0)

    @field_validator("pair")
    @classmethod
    def _positive(cls, value):
        if min(value) < 0:
            raise ValueError("no negative numbers")
        return value


class MoveStruct(ActionStruct):
    side: Side
    pair: tuple[int, int] = (0, 0)


@dataclasses.dataclass
class MoveDataclass:
    side: Side
    pair: tuple[int, int] = (0, 0)


class MoveDict(TypedDict):
    side: str


@pytest.mark.parametrize("cls", [Move, MoveStruct, MoveDataclass])
def test_an_action_is_made_from_bytes_and_from_objects_alike(cls):
    decoder = action_decoder(cls)
    made = decoder.from_json(b'{"side":"left","pair":[1,2]}')

    assert isinstance(made, cls)
    assert (Side.LEFT, (1, 2)) == (made.side, made.pair)
    assert made == decoder.from_objects({"side": "left", "pair": [1, 2]})


@pytest.mark.parametrize("cls", [None, dict, MoveDict, dict[str, Any]])
def test_dicts_stay_dicts(cls):
    assert {"side": "x"} == action_decoder(cls).from_json(b'{"side":"x"}')


@pytest.mark.parametrize("cls", [Move, MoveStruct, MoveDataclass, MoveDict])
@pytest.mark.parametrize("value", [{}, {"side": 5}, []])
def test_what_does_not_fit_is_an_invalid_message_either_way(cls, value):
    decoder = action_decoder(cls)
    raw = msgspec.json.encode(value)
    errors = []
    for decode, argument in ((decoder.from_json, raw), (decoder.from_objects, value)):
        with pytest.raises(InvalidMessage) as invalid:
            decode(argument)
        errors.append(invalid.value.errors)

    assert errors[0] == errors[1]
    assert {"type", "loc", "msg", "input"} <= set(errors[0][0])


def test_errors_are_those_of_python_mode_with_exceptions_as_text():
    with pytest.raises(InvalidMessage) as invalid:
        action_decoder(Move).from_json(b'{"side":"left","pair":[-1,0]}')

    (error,) = invalid.value.errors
    assert {"error": "no negative numbers"} == error["ctx"]
    assert [-1, 0] == error["input"]


@pytest.mark.parametrize(("value", "field"), [({}, "a"), ({"a": 1, "b": 2}, "b")])
def test_msgspec_errors_name_a_missing_or_unknown_field(value, field):
    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        a: int

    with pytest.raises(InvalidMessage) as caught:
        action_decoder(Strict).from_objects(value)

    assert [field] == caught.value.errors[0]["loc"]


def test_msgspec_errors_name_the_place():
    with pytest.raises(InvalidMessage) as invalid:
        action_decoder(MoveStruct).from_json(b'{"side":"left","pair":[1,"x"]}')

    (error,) = invalid.value.errors
    assert ["pair", 1] == error["loc"]
    assert "Expected `int`, got `str`" == error["msg"]


@pytest.mark.parametrize("cls", [Action, CallToolAction, ListToolsAction])
def test_the_type_chooses_among_the_mcp_actions(cls):
    decode = action_decoder(cls).from_json
    call = decode(b'{"type":"call_tool","tool_name":"t"}')
    listed = decode(b'{"type":"list_tools"}')

    assert (CallToolAction, ListToolsAction) == (type(call), type(listed))


def test_a_subclass_of_an_mcp_action_is_not_rerouted():
    class Special(CallToolAction):
        extra: int = 0

    made = action_decoder(Special).from_json(b'{"tool_name":"t","extra":3}')

    assert 3 == made.extra


def test_an_overridden_model_validate_rules():
    class Counted(Action):
        number: int = 0

        @classmethod
        def model_validate(cls, obj, **kwargs):
            return super().model_validate({"number": obj["number"] + 1}, **kwargs)

    assert 2 == action_decoder(Counted).from_json(b'{"number":1}').number


class Seen(Observation):
    grid: Any = None


class SeenStruct(ObservationStruct):
    grid: Any = None


@dataclasses.dataclass
class SeenDataclass:
    grid: Any = None
    done: bool = False
    reward: float | None = None
    metadata: dict = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize("cls", [Seen, SeenStruct, SeenDataclass])
def test_reward_done_and_metadata_are_lifted(cls):
    full = observation_parts(cls(grid=1, reward=0.5, done=True, metadata={"k": 1}))
    empty = observation_parts(cls(grid=2))

    assert {"grid": 1, "metadata": {"k": 1}} == full.observation
    assert (0.5, True, {"k": 1}) == full[1:]
    assert {"grid": 2, "metadata": {}} == empty.observation
    assert (None, False, None) == empty[1:]


def test_what_has_no_reward_or_done_gets_the_defaults():
    class Bare(BaseModel):
        x: int = 1

    assert ({"x": 1}, None, False, None) == observation_parts(Bare())


def test_renamed_struct_fields_go_under_their_wire_names():
    class Renamed(msgspec.Struct, rename="camel"):
        grid_size: int = 3

    assert {"gridSize": 3} == observation_parts(Renamed()).observation


def test_a_struct_has_its_tag_and_no_members_that_are_unset():
    class Tagged(msgspec.Struct, tag="seen", tag_field="kind"):
        grid: int
        extra: int | msgspec.UnsetType = msgspec.UNSET

    assert {"kind": "seen", "grid": 1} == observation_parts(Tagged(1)).observation
    assert {"kind": "seen", "grid": 1, "extra": 2} == state_members(Tagged(1, 2))


@pytest.mark.parametrize("value", [{"x": 1}, None, 5])
def test_what_is_no_observation_is_refused_in_upstreams_words(value):
    name = type(value).__name__
    with pytest.raises(
        AttributeError, match=f"'{name}' object has no attribute 'model_dump'"
    ):
        observation_parts(value)


def test_dicts_count_where_they_were_declared():
    parts = observation_parts({"x": 1, "reward": 2, "done": True}, dicts=True)

    assert ({"x": 1}, 2, True, None) == parts


@pytest.mark.parametrize(
    "state",
    [
        State(episode_id="e", step_count=2),
        StateStruct(episode_id="e", step_count=2),
        OrderedDict(episode_id="e", step_count=2),
    ],
)
def test_states_of_every_kind_have_members(state):
    assert {"episode_id": "e", "step_count": 2} == state_members(state)


def test_no_state_is_an_empty_object():
    assert {} == state_members(None)


@pytest.mark.parametrize("cls", [Move, MoveStruct, MoveDataclass, MoveDict])
def test_every_kind_has_a_schema(cls):
    schema = json_schema(cls)

    assert "object" == schema["type"]
    assert "side" in schema["properties"]


def test_a_recursive_struct_keeps_its_definition():
    schema = json_schema(Tree)

    assert "#/$defs/Tree" == schema["properties"]["children"]["items"]["$ref"]
    assert "children" in schema["$defs"]["Tree"]["properties"]


class Tree(msgspec.Struct):
    children: list[Tree] = []
