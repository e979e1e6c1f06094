"""Models of any fields are written as pydantic does, and come back as they went."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import json
import uuid
from typing import Any, Literal

import pydantic
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from openenv._plain import BYTES_MARKER, plain, restore
from openenv.core._client.codec import shape_of
from openenv.core._native import native
from openenv.core.env_server._codec import observation_parts
from openenv.core.env_server.types import Observation

json_decode = native.json_decode
json_encode = native.json_encode
observation_reply = native.observation_reply


class Shade(enum.Enum):
    DARK = "dark"
    PALE = 0.5


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


# To make a class takes a while, and how long is up to whoever shares the machine.
A_CLASS_EACH = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# Years from 1000 on: pydantic reads no shorter ones back.
zones = st.integers(-1439, 1439).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
datetimes = st.datetimes(
    dt.datetime(1000, 1, 1),  # noqa: DTZ001 - bounds have no zone
    timezones=st.none() | zones,
)
decimals = st.decimals(allow_nan=False, allow_infinity=False)

# (annotation, values); each value is equal to what its own JSON is read as.
SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (bool, st.booleans()),
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, texts),
    (bytes, st.binary(max_size=8)),
    (decimal.Decimal, decimals),
    (uuid.UUID, st.uuids()),
    (dt.date, st.dates(dt.date(1000, 1, 1))),
    (dt.datetime, datetimes),
    (dt.time, st.times()),
    (dt.timedelta, st.timedeltas(dt.timedelta(-1000000), dt.timedelta(1000000))),
    (Shade, st.sampled_from(Shade)),
    (Level, st.sampled_from(Level)),
    (Word, st.sampled_from(Word)),
    (Literal["a", 3], st.sampled_from(["a", 3])),
]
# Not those of which JSON's text is read as something else.
KEYS = [pair for pair in SCALARS if pair[0] not in {bytes, Literal["a", 3]}]
# As a key 0.5 is the text "0.5", which pydantic takes for no member of an enum.
KEYS_READ_BACK = [pair for pair in KEYS if pair[0] is not Shade]


def containers(inner, keys):
    """Give the strategy of pairs that have ``inner`` pairs in them."""

    def of(pair, key):
        kind, value = pair
        pairs = [
            (kind | None, st.none() | value),
            (list[kind], st.lists(value, max_size=3)),
            (tuple[kind, int], st.tuples(value, st.integers())),
            (tuple[kind, ...], st.lists(value, max_size=3).map(tuple)),
            (dict[key[0], kind], st.dictionaries(key[1], value, max_size=3)),
        ]
        return st.sampled_from(pairs)

    return st.tuples(inner, st.sampled_from(keys)).flatmap(lambda args: of(*args))


sets = st.sampled_from(
    [
        pair
        for kind, value in SCALARS
        if kind is not bytes  # a marker is no member of a set
        for pair in (
            (set[kind], st.sets(value, max_size=3)),
            (frozenset[kind], st.frozensets(value, max_size=3)),
        )
    ]
)


def kinds(keys):
    """Give the strategy of pairs with such keys in their dicts."""
    extend = functools.partial(containers, keys=keys)
    return st.recursive(st.sampled_from(SCALARS) | sets, extend, max_leaves=3)


WRITTEN = kinds(KEYS)
READ_BACK = kinds(KEYS_READ_BACK)
ALIASES = st.sampled_from(
    [
        lambda _: {},
        lambda name: {"alias": f"{name}Other"},
        lambda name: {"serialization_alias": f"{name}Written"},
        lambda name: {"validation_alias": f"{name}Read"},
        lambda name: {"validation_alias": AliasChoices(f"{name}A", f"{name}B")},
    ]
)


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)


class ByAlias(ByName):
    model_config = ConfigDict(serialize_by_alias=True)


@st.composite
def models(draw, bases, inner_bases, pairs=WRITTEN, depth=1):
    """Draw an instance of a class that is drawn, too."""
    fields, values = {}, {}
    for number in range(draw(st.integers(1, 4))):
        name = f"f{number}"
        if depth and draw(st.integers(0, 4)) == 0:
            values[name] = draw(models(inner_bases, inner_bases, pairs, depth - 1))
            kind = type(values[name])
        else:
            kind, strategy = draw(pairs)
            values[name] = draw(strategy)
        fields[name] = (kind, Field(**draw(ALIASES)(name)))
    base = draw(st.sampled_from(bases))
    return pydantic.create_model("Model", __base__=base, **fields)(**values)


class SeenByName(Observation, ByName):
    pass


class SeenByAlias(Observation, ByAlias):
    pass


class Reply(BaseModel):
    """As upstream's server writes an answer."""

    type: str = "observation"
    data: dict[str, Any]


def marked(value):
    """Put the marker in the place of bytes: the only difference there may be."""
    if isinstance(value, bytes):
        return plain(value)
    if isinstance(value, dict):
        return {key: marked(inner) for key, inner in value.items()}
    if type(value) in {list, tuple}:
        return type(value)(marked(inner) for inner in value)
    return value


@A_CLASS_EACH
@given(models([SeenByName, SeenByAlias], [ByName, ByAlias]))
def test_an_observation_of_any_fields_has_upstreams_bytes(observation):
    data = {
        "observation": marked(observation.model_dump(exclude={"reward", "done"})),
        "reward": observation.reward,
        "done": observation.done,
    }
    expected = Reply(data=data).model_dump_json()

    assert expected == observation_reply(*observation_parts(observation)).decode()


@A_CLASS_EACH
@given(models([ByName, ByAlias], [ByName, ByAlias]))
def test_an_action_of_any_fields_is_what_pydantic_writes(action):
    expected = json.loads(
        pydantic.TypeAdapter(Any).dump_json(marked(action.model_dump()))
    )

    assert expected == json_decode(json_encode(action))


@A_CLASS_EACH
@given(models([ByName], [ByName], READ_BACK))
def test_a_model_of_any_fields_comes_back_equal(value):
    shape = shape_of(type(value))
    text = json_encode(value)
    if BYTES_MARKER.encode() not in text:
        assert value == shape.from_json(text)

    assert value == shape.from_objects(restore(json_decode(text)))
