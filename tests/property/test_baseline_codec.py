"""Rust and its plain twin say the same of every value and every text."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid

import msgspec
import numpy as np
import pydantic
from hypothesis import given, settings, strategies as st

from openenv import _rust
from openenv.core import _baseline

A_VALUE_EACH = settings(deadline=None)


def outcome(work, *args, **options):
    """Give what comes of a call: the result, or what it raises and says."""
    try:
        return work(*args, **options)
    except Exception as error:  # noqa: BLE001 - whatever it is, both must raise it
        return type(error), str(error)


class Shade(enum.Enum):
    DARK = "dark"
    PALE = 0.5


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: object


class Struct(msgspec.Struct, rename="camel", tag="move"):
    long_name: object


class Model(pydantic.BaseModel):
    x: object


class Ordered(dict):
    """A subclass of a JSON type."""


any_text = st.text(st.characters(), max_size=8)  # lone surrogates too
numbers = st.integers() | st.floats() | st.sampled_from([2**63, -0.0])
leaves = (
    st.none()
    | st.booleans()
    | numbers
    | any_text
    | st.binary(max_size=8)
    | st.datetimes(timezones=st.none() | st.just(dt.UTC))
    | st.decimals()
    | st.uuids()
    | st.sampled_from([Shade.DARK, Shade.PALE, Level.HIGH, 1 + 2j, range(3), object])
    | numbers.map(lambda number: np.array([number]))
    | st.floats(width=32).map(np.float32)
)
keys = any_text | st.sampled_from(
    [
        *(None, True, 0, 1.5, float("nan"), b"k", b"\xff", Shade.DARK, Level.HIGH),
        *((1, 2), object, np.int64(3), uuid.UUID(int=1), decimal.Decimal("1.0")),
    ]
)


def nested(inner):
    return (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=2).map(Ordered)
        | st.tuples(inner, inner)
        | st.builds(Point, inner)
        | st.builds(Struct, inner)
        | st.builds(Model, x=inner)
    )


def wrapped(value, depth):
    for _ in range(depth):
        value = [value]
    return value


# Some at the edge of what may nest.
values = st.builds(
    wrapped,
    st.recursive(leaves, nested, max_leaves=10),
    st.just(0) | st.integers(195, 201),
)


@A_VALUE_EACH
@given(values)
def test_a_value_has_the_same_text_or_the_same_refusal(value):
    expected = outcome(_baseline.json_encode, value)

    assert expected == outcome(_rust.json_encode, value)


@A_VALUE_EACH
@given(
    values,
    leaves,
    st.none() | st.dictionaries(any_text, leaves, max_size=2),
    st.booleans(),
    st.none() | st.dictionaries(any_text, leaves, max_size=2),
)
def test_a_reply_has_the_same_text_or_the_same_refusal(
    value, reward, metadata, nonfinite, ext
):
    options = {"nonfinite": nonfinite, "ext": ext}
    for name, *parts in (
        ("observation_reply", value, reward, False, metadata),
        ("state_reply", value),
    ):
        expected = outcome(getattr(_baseline, name), *parts, **options)

        assert expected == outcome(getattr(_rust, name), *parts, **options)


@A_VALUE_EACH
@given(values, st.none() | st.dictionaries(any_text, leaves, max_size=2))
def test_an_error_and_an_answer_of_mcp_are_written_alike(data, ext):
    expected = outcome(_baseline.error_reply, data, ext=ext)

    assert expected == outcome(_rust.error_reply, data, ext=ext)
    assert outcome(_baseline.mcp_reply, data) == outcome(_rust.mcp_reply, data)


# What decides whether a request is regular, one of each kind.
KEYS = ["type", "data", "ext", "\\u0074ype", "x"]
PARTS = [
    *('"reset"', '"step"', '"state"', '"close"', '"mcp"', '"st\\u0065p"', '"fly"'),
    *("{}", '{"a":1}', ' { "a" : [ "}" , "\\"" ] } ', '{"b":{"__bytes__":"AA=="}}'),
    *("[]", "null", "1", "NaN", '{"a":NaN}', '{"a":"\\ud800"}', '{"\\udfff":1}'),
    *('{"a":1e999}', '{"a":' + "9" * 5000 + "}", '{"a":"\\ud83d\\ude00"}', "{", "01"),
    '{"a":' + "[" * 199 + "]" * 199 + "}",
    '{"a":' + "[" * 200 + "]" * 200 + "}",
    '{"a":' + "[" * 2000 + "]" * 2000 + "}",
]
objects = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(PARTS)), max_size=3)
texts = (
    objects.map(lambda ps: "{" + ",".join(f'"{k}" :{v}' for k, v in ps) + "}\n")
    | st.text(st.sampled_from('[]{}",:0123456789.eE+-\\u dtrfn'))
    | any_text
)


def shown(request):
    """Give the fields of a request, whichever class it has."""
    names = [name for name in ("op", "data", "marked", "raw") if hasattr(request, name)]
    return {name: getattr(request, name) for name in names}


@A_VALUE_EACH
@given(texts | st.binary(max_size=20))
def test_a_message_is_told_apart_alike(text):
    expected = shown(_baseline.split_request(text))

    assert expected == shown(_rust.split_request(text))


@A_VALUE_EACH
@given(texts | st.binary(max_size=20))
def test_a_text_is_decoded_alike(text):
    expected = outcome(json.loads, text)

    assert repr(expected) == repr(outcome(_baseline.json_decode, text))
    assert repr(expected) == repr(outcome(_rust.json_decode, text))
