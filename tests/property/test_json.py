"""The JSON codec agrees with Python's ``json`` on every value there is."""

from __future__ import annotations

import json

import orjson
import pydantic_core
from hypothesis import given, strategies as st

from openenv._plain import restore
from openenv._rust import json_decode, json_encode

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


def outcome(decode, data):
    try:
        return repr(decode(data))
    except ValueError as error:
        return type(error), str(error)


@given(st.binary() | st.text(st.sampled_from('[]{}",:0123456789.eE+-\\u dtrfn')))
def test_decode_accepts_and_refuses_what_json_does(data):
    assert outcome(json.loads, data) == outcome(json_decode, data)
