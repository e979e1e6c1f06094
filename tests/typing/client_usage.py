"""Code as users write it; `test_client_usage.py` has mypy --strict read it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Generic, TypeVar, assert_type

from pydantic import BaseModel

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericAction, GenericEnvClient
from openenv.core.sync_client import SyncEnvClient
from openenv.errors import CapacityReached, ConnectionClosed, RequestTimeout

ObsT = TypeVar("ObsT")


class Move(BaseModel):
    direction: str


class Board(BaseModel):
    cells: list[int]


class Count(BaseModel):
    step_count: int


class GridEnv(EnvClient[Move, Board, Count]):
    async def go_home(self) -> StepResult[Board]:
        return await self.step(Move(direction="home"))


class HookedEnv(EnvClient[Move, Board, Count]):
    def _step_payload(self, action: Move) -> dict[str, Any]:
        return {"direction": action.direction}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Board]:
        return StepResult(observation=Board(**payload["observation"]), done=False)

    def _parse_state(self, payload: dict[str, Any]) -> Count:
        return Count(**payload)


class OverridingEnv(EnvClient[Move, Board, Count]):
    async def reset(self, **kwargs: Any) -> StepResult[Board]:
        return await super().reset(**kwargs)

    async def step(self, action: Move, **kwargs: Any) -> StepResult[Board]:
        return await super().step(action, **kwargs)

    async def close(self) -> None:
        await super().close()


class HalfEnv(EnvClient[Move, ObsT, Count], Generic[ObsT]):
    pass


async def awaiting() -> None:
    async with GridEnv("http://h", headers={"a": "b"}) as env:
        assert_type(env, GridEnv)
        assert_type(await env.connect(), GridEnv)
        assert_type(env.reset(seed=1), Awaitable[StepResult[Board]])
        result = await env.step(Move(direction="up"), timeout_s=1.0)
        assert_type(result, StepResult[Board])
        assert_type(result.observation, Board)
        assert_type(result.reward, float | None)
        assert_type(result.metadata, dict[str, Any] | None)
        assert_type(await env.state(), Count)
        assert_type(await env.go_home(), StepResult[Board])
        task = asyncio.create_task(env.step_async(Move(direction="up")))
        assert_type(await task, StepResult[Board])
        both = await asyncio.gather(env.reset(), env.state())
        assert_type(both, tuple[StepResult[Board], Count])
        await env.step("up")  # expect: arg-type
        await env.step(Move(direction="up"), speed=2)  # expect: call-arg


def blocking() -> None:
    with GridEnv("http://h").sync() as env:
        assert_type(env, SyncEnvClient[Move, Board, Count])
        assert_type(env.reset(seed=1), StepResult[Board])
        assert_type(env.step(Move(direction="up")).observation.cells, list[int])
        assert_type(env.state().step_count, int)
        assert_type(env.async_client, EnvClient[Move, Board, Count])
        env.step(3)  # expect: arg-type


async def generic() -> None:
    env = GenericEnvClient("h")
    result = await env.step(GenericAction(direction="up"))
    assert_type(result, StepResult[dict[str, Any]])
    half = HalfEnv[Board]("h")
    assert_type((await half.reset()).observation, Board)


async def errors(env: GridEnv) -> None:
    try:
        await env.reset()
    except CapacityReached as full:
        assert_type(full.max_sessions, int | None)
    except ConnectionClosed as closed:
        assert_type(closed.code, int)
    except RequestTimeout as timeout:
        assert_type(timeout.timeout_s, float)
