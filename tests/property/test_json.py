"""The JSON codec agrees with Python's ``json`` on every value there is."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import numpy as np
import orjson
import pydantic_core
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from openenv._plain import restore
from openenv.core._native import native

json_decode = native.json_decode
json_encode = native.json_encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
any_text = st.text(st.characters())  # lone surrogates too


def values(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=30,
    )


@given(values(scalars | any_text))
def test_round_trip_equals_that_of_json(value):
    expected = json.loads(json.dumps(value))

    assert expected == json.loads(json_encode(value))
    assert expected == json_decode(json_encode(value))


@given(values(scalars))
def test_every_text_of_json_is_decoded_alike(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert json.loads(text) == json_decode(text)


@given(
    values(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text()
    )
)
def test_encoding_agrees_with_orjson_where_it_accepts_the_value(value):
    assert orjson.loads(orjson.dumps(value)) == orjson.loads(json_encode(value))


@given(values(scalars | st.binary()))
def test_bytes_come_back_through_their_marker(value):
    assert value == restore(json_decode(json_encode(value)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_have_the_spelling_of_upstreams_encoder(value):
    assert pydantic_core.to_json(value) == json_encode(value)


ARRAYS = arrays.arrays(
    arrays.boolean_dtypes()
    | arrays.integer_dtypes()
    | arrays.unsigned_integer_dtypes()
    | arrays.floating_dtypes(sizes=(16, 32, 64)),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


def without_nonfinite(value):
    if isinstance(value, list):
        return [without_nonfinite(item) for item in value]
    return value if math.isfinite(value) else None


@given(ARRAYS, st.integers(0, 3))
def test_an_array_of_any_type_order_and_shape_is_the_list_that_numpy_gives(array, form):
    views = [array, np.asfortranarray(array), array.T, array[..., None][..., ::-1]]
    expected = without_nonfinite(views[form].tolist())

    assert expected == json_decode(json_encode(views[form]))


@st.composite
def structs(draw, depth=1):
    """Draw a msgspec struct of a class that is drawn, too."""
    leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4)
    leaves |= st.lists(leaves, max_size=2)
    member = leaves | structs(depth - 1) if depth else leaves
    given = draw(st.lists(member, min_size=1, max_size=3))
    array_like = draw(st.booleans())
    unset = [] if array_like else [msgspec.UNSET]  # has no place to be left out of
    defaults = st.sampled_from([None, 1, "", *unset, list, dict])
    fields = [
        (f"a_field{number}", Any, default_field(draw(defaults)))
        for number in range(len(given) + draw(st.integers(0, 2)))
    ]
    options = {
        "array_like": array_like,
        "tag": draw(st.sampled_from([None, True, 7, "name"])),
        "tag_field": draw(st.sampled_from([None, "kind"])),
        "rename": draw(st.sampled_from([None, "camel", "upper"])),
        "omit_defaults": draw(st.booleans()),
    }
    return msgspec.defstruct("Drawn", fields, **options)(*given)


def default_field(default):
    if isinstance(default, type):
        return msgspec.field(default_factory=default)
    return msgspec.field(default=default)


# To make a class takes a while.
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(structs())
def test_a_struct_of_any_options_has_the_bytes_of_msgspec(struct):
    assert msgspec.json.encode(struct) == json_encode(struct)


def outcome(decode, data):
    try:
        return repr(decode(data))
    except ValueError as error:
        return type(error), str(error)


@given(st.binary() | st.text(st.sampled_from('[]{}",:0123456789.eE+-\\u dtrfn')))
def test_decode_accepts_and_refuses_what_json_does(data):
    assert outcome(json.loads, data) == outcome(json_decode, data)
