"""The boundary of the JSON codec: which Python values become which text."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import math
import pickle
import re
import uuid
from pathlib import PurePosixPath

import msgspec
import numpy as np
import pydantic
import pytest

from openenv.core._native import native
from openenv.errors import EncodeError

json_decode = native.json_decode
json_encode = native.json_encode


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Point:
    x: int
    inner: object = None


class Struct(msgspec.Struct, rename="camel"):
    long_name: int


class Tagged(msgspec.Struct, tag="move", omit_defaults=True):
    grid: object
    size: int = 3


@dataclasses.dataclass
class HalfMade:
    x: int
    later: int = dataclasses.field(init=False)


class Model(pydantic.BaseModel):
    when: dt.date
    raw: bytes = b"\xff"


class Series(np.ndarray):
    """An array's subclass in a package that is not numpy."""


UTC_NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)

TEXTS = [
    (None, "null"),
    (True, "true"),
    (Level.HIGH, "3"),
    (2**70, str(2**70)),
    (-(2**63), str(-(2**63))),
    (1.0, "1.0"),
    (0.1, "0.1"),
    ('é✓ "q" \\ \x00\x1f\n</script>', '"é✓ \\"q\\" \\\\ \\u0000\\u001f\\n</script>"'),
    ("\ud800a\udfff", '"\\ud800a\\udfff"'),
    (Word.YES, '"yes"'),
    (Colour.RED, '"red"'),
    ((1, [2]), "[1,[2]]"),
    ({1}, "[1]"),
    (collections.OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    ({1: "a", None: "b"}, '{"1":"a","null":"b"}'),
    ({True: "a"}, '{"true":"a"}'),
    ({1.5: 1, Colour.RED: 2}, '{"1.5":1,"red":2}'),
    (UTC_NOON, '"2024-01-02T12:00:00Z"'),
    (UTC_NOON.date(), '"2024-01-02"'),
    (UTC_NOON.time(), '"12:00:00"'),
    (dt.timedelta(seconds=90), '"PT1M30S"'),
    (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    (decimal.Decimal("1.20"), '"1.20"'),
    (PurePosixPath("/a/b"), '"/a/b"'),
    (collections.deque([1, b"a"]), '[1,{"__bytes__":"YQ=="}]'),
    (iter([1, 2]), "[1,2]"),
    (pydantic.HttpUrl("http://a.b/c"), '"http://a.b/c"'),
    (ipaddress.ip_address("::1"), '"::1"'),
    (1 + 2j, '"1+2j"'),
    (re.compile("a+"), '"a+"'),
    ({(1, 2): 3, b"k": 4}, '{"1,2":3,"k":4}'),
    (np.longdouble(0.5), "0.5"),
    ([np.clongdouble(0.5 + 1j)], '["0.5+1j"]'),
    (np.arange(2).view(Series), "[0,1]"),
    (
        {np.int64(3): 1, np.float32(0.5): 2, np.bool_(True): 3, np.str_("k"): 4},
        '{"3":1,"0.5":2,"true":3,"k":4}',
    ),
    (b"\x00\xff", '{"__bytes__":"AP8="}'),
    (memoryview(b"abcdef")[::2], '{"__bytes__":"YWNl"}'),
    (bytearray(b"abc"), '{"__bytes__":"YWJj"}'),
    (np.float32(0.25), "0.25"),
    (np.int64(7), "7"),
    (np.bool_(True), "true"),
    (np.arange(6, dtype=np.uint8).reshape(2, 3), "[[0,1,2],[3,4,5]]"),
    (np.array(5), "5"),
    ([np.float32(1.5)], "[1.5]"),
    (Point(1, Point(2)), '{"x":1,"inner":{"x":2,"inner":null}}'),
    (HalfMade(1), '{"x":1}'),
    (Struct(1), '{"longName":1}'),
    (Tagged(np.arange(2)), '{"type":"move","grid":[0,1]}'),
    (
        Model(when=UTC_NOON.date()),
        '{"when":"2024-01-02","raw":{"__bytes__":"/w=="}}',
    ),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_each_value_has_its_text(value, text):
    assert text == json_encode(value).decode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_floats_are_null(value):
    assert json_encode([value, {"a": value}]) == b'[null,{"a":null}]'


class Unknown:
    pass


TorchType = type("dtype", (), {"__module__": "torch"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Unknown(), f"data: cannot encode {__name__}.Unknown"),
        (
            {"frames": [0, 1, {"mask": Unknown()}]},
            f"data.frames[2].mask: cannot encode {__name__}.Unknown",
        ),
        (
            {"a": Point(1, [Unknown()])},
            f"data.a.inner[0]: cannot encode {__name__}.Unknown",
        ),
        (
            {"frames": [0, 1, 2, {"mask": TorchType()}]},
            "data.frames[3].mask: cannot encode torch.dtype",
        ),
        ({"a": {b"\xff": 1}}, r"data.a.b'\xff': cannot encode bytes"),
        ({"a": range(3)}, "data.a: cannot encode range"),
        ({Unknown: 3}, f"data.{Unknown}: cannot encode type"),
        ({"a": np.dtype("int8")}, "data.a: cannot encode numpy.dtypes.Int8DType"),
        ([10**5000], "data[0]: cannot encode an integer of that many digits"),
    ],
)
def test_what_cannot_be_encoded_is_named_with_its_path(value, message):
    with pytest.raises(EncodeError) as caught:
        json_encode(value)

    assert message == str(caught.value)
    assert message == str(pickle.loads(pickle.dumps(caught.value)))


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_is_limited_to_200():
    assert json_encode(nested(200)) == b"[" * 200 + b"]" * 200
    with pytest.raises(EncodeError, match="nested more than 200 deep"):
        json_encode(nested(201))


def test_a_value_that_holds_itself_is_refused_not_followed():
    value = []
    value.append(value)
    with pytest.raises(EncodeError, match="nested more than 200 deep") as caught:
        json_encode(value)

    assert len(str(caught.value)) < 300


def test_a_dict_that_changes_while_it_is_encoded_raises_and_does_not_crash():
    class Adder(dict):
        def items(self):
            table["new"] = 1
            return super().items()

    table = {"a": Adder(), "b": 1}
    with pytest.raises(RuntimeError, match=r"changed.* size"):
        json_encode(table)


def test_an_error_of_the_users_code_comes_through():
    class Broken(dict):
        def items(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        json_encode([Broken()])


ACCEPTED = [
    '{"a": [1, 2.5e3, "x\\u00e9"], "a": null}',
    "NaN",
    "[Infinity, -Infinity]",
    '"\\ud800"',
    "1" * 4000,
    "[" * 300 + "]" * 300,
    " \n1\t",
]


@pytest.mark.parametrize("text", ACCEPTED, ids=range(len(ACCEPTED)))
@pytest.mark.parametrize("form", [str, str.encode])
def test_decode_accepts_what_json_accepts(text, form):
    expected = json.loads(text)
    found = json_decode(form(text))

    assert repr(expected) == repr(found)


@pytest.mark.parametrize("text", ["", "{", '{"a":}', "[1,]", "nul", "1 2", "\x00"])
def test_decode_refuses_in_the_words_of_json(text):
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as found:
        json_decode(text)

    assert str(expected.value) == str(found.value)
