"""A client with pydantic models: awaited, blocking, with hooks and overrides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Generic, TypeVar, assert_type

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server import Action, Observation, State
from openenv.core.sync_client import SyncEnvClient

ObsT = TypeVar("ObsT")


class Move(Action):
    direction: str


class Board(Observation):
    cells: list[int]


class Count(State):
    moves: int = 0


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
    # reveals: StepResult[Board]
    reveal_type(await GridEnv("http://h").step(Move(direction="up")))
    async with GridEnv("http://h", headers={"a": "b"}) as env:
        assert_type(env, GridEnv)
        assert_type(await env.connect(), GridEnv)
        assert_type(env.reset(seed=1), Awaitable[StepResult[Board]])
        result = await env.step(Move(direction="up"), timeout_s=1.0)
        assert_type(result, StepResult[Board])
        assert_type(result.observation, Board)
        assert_type(result.observation.reward, bool | int | float | None)
        assert_type(result.reward, float | None)
        assert_type(result.done, bool)
        assert_type(result.metadata, dict[str, Any] | None)
        assert_type(await env.state(), Count)
        assert_type((await env.state()).episode_id, str | None)
        assert_type(await env.go_home(), StepResult[Board])
        task = asyncio.create_task(env.step_async(Move(direction="up")))
        assert_type(await task, StepResult[Board])
        both = await asyncio.gather(env.reset(), env.state())
        assert_type(both, tuple[StepResult[Board], Count])
        async with await env.new_session() as second:
            assert_type(second, GridEnv)
        assert_type(await env.schema(), dict[str, Any])
    patient = GridEnv("https://h", verify="ca.pem", proxy=None, io="thread")
    assert_type(await patient.connect(retry_s=30.0), GridEnv)
    half = HalfEnv[Board]("h")
    assert_type((await half.reset()).observation, Board)
    assert_type(await OverridingEnv("h").reset(), StepResult[Board])


def blocking() -> None:
    with GridEnv("http://h").sync() as env:
        reveal_type(env)  # reveals: SyncEnvClient[Move, Board, Count]
        assert_type(env, SyncEnvClient[Move, Board, Count])
        assert_type(env.reset(seed=1), StepResult[Board])
        assert_type(env.step(Move(direction="up")).observation.cells, list[int])
        assert_type(env.state().moves, int)
        assert_type(env.new_session(), SyncEnvClient[Move, Board, Count])
        assert_type(env.async_client, EnvClient[Move, Board, Count])
        env.close()
    with GridEnv("http://h") as client:  # bare calls inside are awaitables to a checker
        assert_type(client, GridEnv)


async def mistakes(env: GridEnv) -> None:
    await env.step("up")  # expect: arg-type, reportArgumentType
    await env.step()  # expect: call-arg, reportCallIssue
    # expect: call-arg, reportCallIssue
    await env.step(Move(direction="up"), speed=2)
    # expect: arg-type, reportArgumentType
    await env.step(Move(direction=3))
    result = await env.reset()
    # expect: attr-defined, reportAttributeAccessIssue
    result.observation.sells
    result.reward + 1  # expect: operator, reportOptionalOperand
    # expect: attr-defined, reportAttributeAccessIssue
    env.reset().observation
    # expect: arg-type, reportArgumentType
    GridEnv("h", message_timeout_s="1")
    GridEnv("h", io="process")  # expect: arg-type, reportArgumentType
    GridEnv("h", time_limit_s=1)  # expect: call-arg, reportCallIssue
    env.sync().step(3)  # expect: arg-type, reportArgumentType
    # expect: attr-defined, reportGeneralTypeIssues
    async with env.sync():
        pass
