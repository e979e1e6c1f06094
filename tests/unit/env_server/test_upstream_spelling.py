"""Replies have the bytes that upstream's own way of writing them gives.

Upstream dumps the observation to Python objects and lets pydantic write those as
JSON. Both ways are taken here, side by side, for values of every type that fields
have. Where they differ on purpose (bytes, arrays, surrogates): docs/deviations.md 6.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import re
import uuid
from typing import TYPE_CHECKING, Any

import pydantic
import pytest
from pydantic import BaseModel, RootModel, field_serializer, model_serializer

from openenv.core._native import native
from openenv.core.env_server._codec import observation_parts
from openenv.core.env_server.types import Observation

if TYPE_CHECKING:
    from collections.abc import Callable


class Anything(Observation):
    f: Any = None


class Shade(enum.Enum):
    DARK = "dark"


class Level(enum.IntEnum):
    HIGH = 3


class Inner(BaseModel):
    x: int = 1


class Custom(BaseModel):
    x: int = 1

    @model_serializer
    def _as_text(self) -> str:
        return f"x={self.x}"


class Fields(Observation):
    when: dt.datetime = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    url: pydantic.AnyUrl = pydantic.AnyUrl("x://a")
    secret: pydantic.SecretStr = pydantic.SecretStr("s")

    @field_serializer("when")
    def _plus_a_day(self, when: dt.datetime) -> dt.datetime:
        return when + dt.timedelta(days=1)


class Sentence(Observation):
    @model_serializer
    def _as_text(self) -> str:
        return "not an object"


@dataclasses.dataclass
class Pair:
    left: Any = 1
    right: Any = 2


VALUES: list[Callable[[], object]] = [
    lambda: dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    lambda: dt.datetime(2020, 1, 1, microsecond=5),  # noqa: DTZ001 - none is meant
    lambda: dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    lambda: dt.date(2020, 1, 2),
    lambda: dt.time(1, 2, 3, 4, tzinfo=dt.UTC),
    lambda: dt.timedelta(days=1, seconds=3661.5),
    lambda: dt.timedelta(days=-1, microseconds=5),
    lambda: decimal.Decimal("1.50"),
    lambda: decimal.Decimal("1E+5"),
    lambda: uuid.UUID(int=1),
    lambda: pathlib.Path("/x"),
    lambda: ipaddress.ip_address("::1"),
    lambda: ipaddress.ip_network("1.2.3.0/24"),
    lambda: pydantic.HttpUrl("http://a.b/c"),
    lambda: pydantic.SecretStr("s"),
    lambda: re.compile("a+"),
    lambda: 1 + 2j,
    lambda: Shade.DARK,
    lambda: Level.HIGH,
    lambda: {Shade.DARK: 1, Level.HIGH: 2, None: 3, (1, 2): 4, b"k": 5, 1e100: 6},
    lambda: {True: 1, 1.5: 2, dt.date(2020, 1, 1): 3, uuid.UUID(int=1): 4},
    lambda: {1},
    lambda: frozenset({"a"}),
    lambda: (1, [2]),
    lambda: collections.deque([1]),
    lambda: collections.Counter("aab"),
    lambda: (i for i in [1, 2]),
    Inner,
    Custom,
    lambda: RootModel[list[int]]([1]),
    lambda: Pair(Pair()),
    lambda: [1e16, 1e22, 5e-324, -0.0, 1e-7, 123456789012345680.0, float("nan")],
    lambda: [10**30, -(2**63) - 1],
    lambda: 'é\u2028\x7f\x00"\\/',
]


def upstreams(observation: Observation) -> bytes:
    class Reply(BaseModel):
        type: str = "observation"
        data: dict[str, Any]

    data = {
        "observation": observation.model_dump(exclude={"reward", "done"}),
        "reward": observation.reward,
        "done": observation.done,
    }
    return Reply(data=data).model_dump_json().encode()


def ours(observation: Observation) -> bytes:
    return native.observation_reply(*observation_parts(observation))


@pytest.mark.parametrize("make", VALUES, ids=range(len(VALUES)))
def test_a_value_has_upstreams_bytes(make):
    assert upstreams(Anything(f=make())) == ours(Anything(f=make()))


@pytest.mark.parametrize("cls", [Fields, Sentence])
def test_a_models_own_serializers_rule(cls):
    assert upstreams(cls()) == ours(cls())
