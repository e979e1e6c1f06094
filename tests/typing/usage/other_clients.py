"""Clients whose models are msgspec structs, dataclasses, typed dictionaries, dicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import msgspec

from openenv import GenericAction, GenericEnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.structs import ActionStruct, ObservationStruct, StateStruct
from openenv.core.sync_client import SyncEnvClient


class Add(ActionStruct):
    amount: int


class Total(ObservationStruct):
    total: int


class StructEnv(EnvClient[Add, Total, StateStruct]):
    pass


class Bare(msgspec.Struct):
    value: int


class BareEnv(EnvClient[Bare, Bare, Bare]):
    pass


@dataclass
class Push:
    force: float


@dataclass
class Position:
    x: float


class DataclassEnv(EnvClient[Push, Position, dict[str, Any]]):
    pass


class Word(TypedDict):
    text: str


class WordEnv(EnvClient[Word, Word, Word]):
    pass


async def structs() -> None:
    async with StructEnv("http://h") as env:
        result = await env.step(Add(amount=1))
        reveal_type(result)  # reveals: StepResult[Total]
        assert_type(result.observation.total, int)
        assert_type((await env.state()).step_count, int)
        # expect: arg-type, reportArgumentType
        await env.step(Add(amount="1"))
        # expect: arg-type, reportArgumentType
        await env.step(Bare(value=1))
    assert_type((await BareEnv("h").reset()).observation.value, int)


async def dataclasses() -> None:
    result = await DataclassEnv("h").step(Push(force=1.0))
    reveal_type(result)  # reveals: StepResult[Position]
    assert_type(result.observation.x, float)
    # expect: attr-defined, reportAttributeAccessIssue
    result.observation.y


def typed_dictionaries() -> None:
    env = WordEnv("h").sync()
    assert_type(env.step({"text": "a"}).observation["text"], str)
    # expect: typeddict-item, typeddict-unknown-key, reportArgumentType
    env.step({"tex": "a"})


async def generic() -> None:
    env = GenericEnvClient("h")
    result = await env.step(GenericAction(direction="up"))
    reveal_type(result)  # reveals: StepResult[dict[str, Any]]
    assert_type(result, StepResult[dict[str, Any]])
    assert_type(await env.step({"direction": "up"}), StepResult[dict[str, Any]])
    assert_type(await env.state(), dict[str, Any])
    await env.step("up")  # expect: arg-type, reportArgumentType


def generic_blocking() -> None:
    with GenericEnvClient("h").sync() as env:
        assert_type(env, SyncEnvClient[dict[str, Any], dict[str, Any], dict[str, Any]])
        assert_type(env.step({"a": 1}).observation, dict[str, Any])
