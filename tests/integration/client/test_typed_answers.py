"""What answers become: models by the client's type arguments."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Generic, TypeVar

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, ValidationError
from tests.integration.client.scripted import scripted

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericAction, GenericEnvClient
from openenv.errors import RemoteProtocolError, SessionLost

ObsT = TypeVar("ObsT")


class Action(BaseModel):
    it: Any


class Observation(BaseModel):
    model_config = ConfigDict(extra="forbid")
    echo: dict[str, Any]
    session: int
    steps: int
    done: bool = True
    reward: float | None = None


class State(BaseModel):
    session: int
    steps: int


class StructAction(msgspec.Struct):
    it: int


class Struct(msgspec.Struct, frozen=True):
    session: int
    steps: int
    reward: float | None = None


@dataclasses.dataclass
class Plain:
    session: int
    steps: int
    done: bool = True


@dataclasses.dataclass
class PlainAction:
    it: int


class PydanticEnv(EnvClient[Action, Observation, State]):
    pass


class StructEnv(EnvClient[StructAction, Struct, Struct]):
    pass


class DataclassEnv(EnvClient[PlainAction, Plain, Plain]):
    pass


class Half(EnvClient[Action, ObsT, State], Generic[ObsT]):
    pass


async def test_pydantic_models_are_sent_and_made():
    async with scripted() as server, PydanticEnv(server.url) as env:
        reset = await env.reset(seed=3)
        step = await env.step(Action(it={"deep": [1, None]}))
        state = await env.state()

    assert {"seed": 3} == reset.observation.echo
    expected = Observation(
        echo={"it": {"deep": [1, None]}}, session=1, steps=1, done=False, reward=0.5
    )
    assert StepResult(expected, 0.5, False, None) == step
    assert State(session=1, steps=1) == state


async def test_msgspec_structs_are_sent_and_made():
    async with scripted() as server, StructEnv(server.url) as env:
        await env.reset()
        step = await env.step(StructAction(it=1))
        state = await env.state()

    assert {"it": 1} == server.received[1]["data"]
    assert StepResult(Struct(1, 1, 0.5), 0.5, False, None) == step
    assert Struct(1, 1) == state


async def test_dataclasses_are_sent_and_made():
    async with scripted() as server, DataclassEnv(server.url) as env:
        await env.reset()
        step = await env.step(PlainAction(it=1))

    assert {"it": 1} == server.received[1]["data"]
    assert StepResult(Plain(1, 1, done=False), 0.5, False, None) == step


async def test_a_generic_subclass_takes_its_argument_at_the_call():
    async with scripted() as server, Half[Struct](server.url) as env:
        await env.reset()
        step = await env.step(Action(it=1))

    assert Struct(1, 1, 0.5) == step.observation


async def test_actions_may_be_given_as_dicts_to_a_typed_client():
    async with scripted() as server, PydanticEnv(server.url) as env:
        await env.reset()
        await env.step({"it": "as it is"})
        await env.step(GenericAction(it=2))

    assert [{"it": "as it is"}, {"it": 2}] == [m["data"] for m in server.received[1:3]]


async def test_metadata_beside_the_observation_is_the_results():
    data = {"observation": {"a": 1}, "reward": None, "done": True, "metadata": {"k": 1}}
    async with scripted() as server, GenericEnvClient(server.url) as env:
        result = await env.reset(reply={"type": "observation", "data": data})

    assert StepResult({"a": 1}, None, True, {"k": 1}) == result


async def test_an_answer_with_nothing_in_it_has_upstreams_defaults():
    async with scripted() as server, GenericEnvClient(server.url) as env:
        result = await env.reset(reply={"type": "observation", "data": {}})

    assert StepResult({}, None, False, None) == result


async def test_an_answer_that_does_not_fit_fails_its_call_only():
    bad = {"type": "observation", "data": {"observation": {"session": "x"}}}
    async with scripted() as server, PydanticEnv(server.url) as env:
        await env.reset()
        with pytest.raises(ValidationError):
            await env.step({"reply": bad})
        step = await env.step(Action(it=2))

    assert 2 == step.observation.steps


async def test_non_finite_numbers_come_back_where_the_server_says_so():
    reply = {
        "type": "observation",
        "data": {"observation": {"a": [None, 1.0]}, "reward": None, "done": False},
        "ext": {"nonfinite": [[["observation", "a", 0], "inf"], [["reward"], "nan"]]},
    }
    async with scripted() as server, GenericEnvClient(server.url) as env:
        result = await env.reset(reply=reply)

    assert [math.inf, 1.0] == result.observation["a"]
    assert math.isnan(result.reward)


async def test_bytes_travel_both_ways():
    class Blob(BaseModel):
        echo: dict[str, Any]

    class BlobEnv(EnvClient[Action, Blob, State]):
        pass

    async with scripted() as server, BlobEnv(server.url) as env:
        await env.reset()
        step = await env.step(Action(it=b"\xff\x00a"))
        plain = await GenericEnvClient(server.url).__aenter__()
        untyped = await plain.step({"it": [b"\xff\x00a", "abc"]})
        await plain.close()

    assert {"it": b"\xff\x00a"} == step.observation.echo
    assert {"it": [b"\xff\x00a", "abc"]} == untyped.observation["echo"]


@pytest.mark.parametrize(
    "value",
    [2**70, "emoji 🎲 \x00 é", "\ud800", [[[]]], {"": 0}, -0.0, 1e308, "__bytes__"],
)
async def test_awkward_values_come_back_as_they_went(value):
    async with scripted() as server, GenericEnvClient(server.url) as env:
        await env.reset()
        result = await env.step({"it": value})

    assert {"it": value} == result.observation["echo"]


@pytest.mark.parametrize("junk", ["this is no JSON", "[1]", "null"])
async def test_an_answer_that_is_no_answer_ends_the_session(junk):
    async with scripted() as server, GenericEnvClient(server.url) as env:
        await env.reset()
        [connection] = server.connections
        await connection.send(junk)
        with pytest.raises(RemoteProtocolError):
            await env.step({"it": 1, "sleep": 0.1})
        with pytest.raises(SessionLost):
            await env.step({"it": 2})
        again = await env.reset()

    assert 2 == again.observation["session"]
