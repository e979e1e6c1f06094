"""Random values that fit a schema."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from enum import StrEnum
from typing import Annotated, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from openenv.rollout.errors import InvalidRollout
from openenv.rollout.policy import Episode
from openenv.rollout.sampling import compile_sampler, random_policy


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Tree(BaseModel):
    value: int
    left: Tree | None = None
    children: list[Tree] = Field(default_factory=list)


class Walk(BaseModel):
    kind: Literal["walk"]
    pace: float = Field(ge=0.5, lt=2)


class Wait(BaseModel):
    kind: Literal["wait"]
    seconds: int = Field(gt=0, le=5, multiple_of=2)


class Everything(BaseModel):
    colour: Colour
    flag: bool
    text: str = Field(min_length=2, max_length=4)
    pair: tuple[int, float]
    many: list[Annotated[int, Field(ge=1, le=3)]] = Field(min_length=1, max_length=4)
    some: set[Colour] = Field(default_factory=set)
    maybe: int | None = None
    do: Walk | Wait = Field(discriminator="kind")
    tree: Tree
    metadata: dict[str, object] = Field(default_factory=dict)


@given(seed=st.integers())
def test_each_drawn_value_is_valid_for_the_model(seed):
    draw = compile_sampler(Everything.model_json_schema())

    value = draw(random.Random(seed))

    Everything.model_validate(value)


@pytest.mark.parametrize(
    "kind",
    [
        int,
        float,
        bool,
        str,
        None,
        Literal[1, "a"] | None,
        list[int],
        dict[str, int],
        Annotated[int, Field(gt=3, lt=5)],
        Annotated[int, Field(le=-1000)],
        Annotated[float, Field(gt=0, lt=1e-9)],
        Annotated[float, Field(ge=0, le=3, multiple_of=0.5)],
        Annotated[list[int], Field(min_length=5, max_length=5)],
        int | str | None,
    ],
)
def test_each_kind_of_schema_is_drawn_validly(kind):
    adapter = TypeAdapter(kind)
    draw = compile_sampler(adapter.json_schema())
    rng = random.Random(0)

    for _ in range(50):
        adapter.validate_python(draw(rng))


@pytest.mark.parametrize("form", ["date-time", "date", "time", "uuid"])
def test_known_formats_are_drawn(form):
    kinds = {
        "date-time": dt.datetime,
        "date": dt.date,
        "time": dt.time,
        "uuid": uuid.UUID,
    }
    draw = compile_sampler({"type": "string", "format": form})

    for seed in range(20):
        TypeAdapter(kinds[form]).validate_python(draw(random.Random(seed)))


def test_all_of_joins_members():
    schema = {
        "$defs": {"a": {"type": "object", "properties": {"x": {"const": 1}}}},
        "allOf": [
            {"$ref": "#/$defs/a"},
            {"properties": {"y": {"const": 2}}, "required": ["x", "y"]},
        ],
    }

    assert compile_sampler(schema)(random.Random(0)) == {"x": 1, "y": 2}


def test_list_of_types_draws_each():
    draw = compile_sampler({"type": ["integer", "null"]})
    rng = random.Random(0)

    assert {type(draw(rng)) for _ in range(50)} == {int, type(None)}


def test_unique_items_are_unique():
    schema = {
        "type": "array",
        "items": {"enum": [1, 2, 3]},
        "minItems": 3,
        "maxItems": 3,
        "uniqueItems": True,
    }

    assert sorted(compile_sampler(schema)(random.Random(4))) == [1, 2, 3]


def test_both_optional_presence_and_absence_occur():
    schema = {"type": "object", "properties": {"x": {"const": 1}}}
    draw, rng = compile_sampler(schema), random.Random(0)

    drawn = [draw(rng) for _ in range(50)]

    assert {} in drawn
    assert {"x": 1} in drawn


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"type": "string", "pattern": "^a+$"}, "pattern"),
        ({"type": "teapot"}, "teapot"),
        ({"$ref": "#/$defs/none"}, "has no"),
        ({"enum": []}, "empty enum"),
        ({"anyOf": []}, "without options"),
        (False, "no value fits"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no integer fits"),
    ],
)
def test_what_cannot_be_drawn_is_refused_when_compiling(schema, complaint):
    with pytest.raises(InvalidRollout, match=complaint):
        compile_sampler({"type": "object", "properties": {"x": schema}})


def test_random_policy_repeats_itself_for_the_same_generator():
    policy = random_policy(Everything.model_json_schema())

    def play():
        episode = Episode(0, 0, 5, random.Random(5))
        return [policy({}, episode) for _ in range(10)]

    assert play() == play()


def test_action_that_is_no_object_is_refused():
    with pytest.raises(InvalidRollout, match="not an object"):
        random_policy({"type": "integer"})
