"""What a server writes is what its client's call gives, whatever way it is decoded."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given, settings, strategies as st
from tests.support.wire import Result, Wire

from openenv._plain import restore
from openenv.core._client.codec import shape_of
from openenv.core._native import native

Decoder = native.Decoder
observation_reply = native.observation_reply


class Model(pydantic.BaseModel):
    x: Any
    number: float = 0.0
    done: bool = False


class Struct(msgspec.Struct):
    x: Any
    number: float = 0.0
    done: bool = False


@dataclasses.dataclass
class Plain:
    x: Any
    number: float = 0.0
    done: bool = False


@pydantic.dataclasses.dataclass
class Validated:
    x: Any
    number: float = 0.0
    done: bool = False


class Typed(TypedDict):
    x: Any


KINDS = [Model, Struct, Plain, Validated, Typed, dict]


def answered(kind, text):
    """Give what a step's call gets for a server's text, or the error's type."""

    async def call():
        wire = Wire()
        wire.connect()
        await wire.opened
        shape = shape_of(kind)
        decoder = Decoder.result(
            Result, shape.from_json, shape.from_objects, shape.lift
        )
        future = wire.call(payload={}, decoder=decoder)
        wire.say(text)
        return await future

    return asyncio.run(call())


def values(leaves):
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
        ),
        max_leaves=10,
    )


any_text = st.text(st.characters())  # lone surrogates too
ANYTHING = values(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.binary()
)


@settings(deadline=None)
@given(ANYTHING, st.floats() | st.none(), st.booleans())
def test_every_value_comes_back_through_a_reply(value, reward, done):
    reply = observation_reply({"x": value}, reward, done, nonfinite=True)
    result = answered(dict, reply.decode())

    assert repr(Result({"x": value}, reward, done)) == repr(result)


@settings(deadline=None)
@given(ANYTHING, st.floats(), st.sampled_from(KINDS))
def test_every_value_comes_back_in_its_type(value, number, kind):
    members = {"x": value} if kind in {Typed, dict} else {"x": value, "number": number}
    reply = observation_reply(members, None, True, nonfinite=True)
    expected = (
        members if kind in {Typed, dict} else kind(x=value, number=number, done=True)
    )

    assert repr(expected) == repr(answered(kind, reply.decode()).observation)


# What `json` reads and one of the fast parsers does not, or reads otherwise.
TOKENS = [
    "NaN",
    "-Infinity",
    "1e999",
    "-1e999",
    "1" * 400 + ".5",
    "9" * 30,
    "9" * 4300,
    "-0",
    '"\\ud800"',
    '{"\\udfff":1}',
    '{"a":1,"a":2}',
    "[" * 197 + "]" * 197,
    "[" * 250 + "]" * 250,
    '{"__bytes__":"_"}',
    '{"__bytes__":"/w=="}',
    "0.1",
    " [ 1 ] ",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=3), st.sampled_from(KINDS))
def test_what_only_python_reads_is_read_into_every_type(tokens, kind):
    text = f'{{"x":[{",".join(tokens)}],"x":[{",".join(reversed(tokens))}]}}'
    answer = f'{{"type":"observation","data":{{"observation":{text},"done":true}}}}'
    members = restore(json.loads(text))
    expected = members if kind in {Typed, dict} else kind(**members, done=True)

    assert repr(expected) == repr(answered(kind, answer).observation)


@pytest.mark.parametrize("kind", [Model, Struct, Plain, Validated])
def test_a_number_out_of_range_is_read_as_python_reads_it(kind):
    answer = '{"type":"observation","data":{"observation":{"x":1,"number":1e999}}}'

    assert math.inf == answered(kind, answer).observation.number


@pytest.mark.parametrize("kind", [Model, Struct, Plain, Validated])
def test_what_does_not_fit_is_refused_in_the_words_of_the_types_own_parser(kind):
    answer = '{"type":"observation","data":{"observation":{"x":1,"number":"n"}}}'

    with pytest.raises(ValueError, match="number"):
        answered(kind, answer)
