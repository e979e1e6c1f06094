"""Errors with their fields, a rollout from Python, and names that are not there."""

from __future__ import annotations

from typing import Any, assert_type

# expect: attr-defined, reportAttributeAccessIssue
from openenv import GenericEnvClient, NoSuchClient

# expect: attr-defined, reportAttributeAccessIssue
from openenv.core import NoSuchName

# expect: attr-defined, reportAttributeAccessIssue
from openenv.core.env_server import create_ap
from openenv.errors import (
    CapacityReached,
    ConnectFailed,
    ConnectionClosed,
    EncodeError,
    ExecutionFailed,
    LimitExceeded,
    OpenEnvError,
    RequestTimeout,
    ServerError,
    ValidationFailed,
)
from openenv.rollout import Episode, EpisodeRecord, Rollout, RolloutOptions


async def errors(env: GenericEnvClient) -> None:
    try:
        await env.reset()
    except CapacityReached as full:
        assert_type(full.max_sessions, int | None)
    except ValidationFailed as refused:
        assert_type(refused.errors, list[dict[str, Any]])
    except ExecutionFailed as raised:
        assert_type(raised.exception, str | None)
        # expect: attr-defined, reportAttributeAccessIssue
        raised.exceptoin
    except ServerError as answered:
        assert_type((answered.code, answered.data), tuple[str, dict[str, Any]])
    except ConnectFailed as failed:
        assert_type(failed.status, int | None)
    except ConnectionClosed as closed:
        assert_type(closed.code, int)
    except RequestTimeout as timeout:
        assert_type(timeout.timeout_s, float)
    except EncodeError as unknown:
        assert_type(unknown.path, str)
    except LimitExceeded as long:
        assert_type(long.limit, int | None)
    except OpenEnvError:
        pass


def builtin_parents() -> None:
    parents: list[type[ConnectionError]] = [ConnectFailed, ConnectionClosed]
    timeouts: list[type[TimeoutError]] = [RequestTimeout]
    # expect: list-item, reportAssignmentType
    wrong: list[type[TimeoutError]] = [ServerError]
    print(parents, timeouts, wrong)


def act(observation: dict[str, Any], episode: Episode) -> dict[str, Any]:
    return {"direction": episode.rng.choice(observation["legal_moves"])}


async def playing() -> None:
    with Rollout(RolloutOptions("grid_world_env", sessions=4, episodes=8)) as rollout:
        await rollout.run()
        assert_type(rollout.tally.steps, int)
    # expect: call-arg, reportCallIssue
    RolloutOptions("grid_world_env")


def first_reward(record: EpisodeRecord) -> float:
    return record.reward
