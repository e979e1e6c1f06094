"""The small environments that the golden transcripts were recorded with.

Each action message picks a behaviour, so that one environment covers every kind of
value and failure that can cross the wire. They import only what both upstream and
this project offer, and run unchanged in either.
"""

# ruff: noqa: ARG001, ARG002 - upstream's signatures, whatever is used of them

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import time
from typing import Any

import numpy as np
from pydantic import field_validator

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

NAN = float("nan")
INFINITY = float("inf")


class EchoAction(Action):
    message: str
    repeat: int = 1


class EchoObservation(Observation):
    echoed: str = ""
    payload: Any = None


class EchoState(State):
    last_message: str = ""


class ValidatorAction(EchoAction):
    @field_validator("message")
    @classmethod
    def _no_bad(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("bad is not allowed")
        return value


class Colour(enum.Enum):
    RED = "red"


class Plain:
    """A type no serializer knows."""

    def __init__(self) -> None:
        self.a = 1


# The recordings name the type by the module that they were made in.
Plain.__module__ = "echo_env"

OBSERVATIONS: dict[str, dict[str, Any]] = {
    "reward_nan": {"reward": NAN},
    "reward_inf": {"reward": INFINITY},
    "reward_ninf": {"reward": -INFINITY},
    "obs_nan": {"payload": NAN},
    "obs_inf_list": {"payload": [INFINITY, -INFINITY, NAN]},
    "obs_nan_nested": {"payload": {"a": {"b": NAN}}},
    "bytes_utf8": {"payload": b"hello"},
    "bytes_raw": {"payload": b"\x00\xff\xfe"},
    "bytearray": {"payload": bytearray(b"abc")},
    "np_float_reward": {"reward": np.float64(0.5)},
    "np_float32_reward": {"reward": np.float32(0.5)},
    "np_int_reward": {"reward": np.int64(3)},
    "np_float64_obs": {"payload": np.float64(0.25)},
    "np_float32_obs": {"payload": np.float32(0.25)},
    "np_int_obs": {"payload": np.int64(7)},
    "np_bool_obs": {"payload": np.bool_(True)},
    "np_array": {"payload": np.arange(3)},
    "np_in_list": {"payload": [np.float32(1.5)]},
    "tuple": {"payload": (1, 2)},
    "set": {"payload": {1}},
    "datetime": {"payload": dt.datetime(2024, 1, 2, 3, 4, 5)},  # noqa: DTZ001 - recorded without a zone
    "enum": {"payload": Colour.RED},
    "object": {"payload": Plain()},
    "int_keys": {"payload": {1: "a"}},
    "unicode": {"echoed": 'é✓\u2028 "q" \\ </script>'},
    "surrogate": {"echoed": "\ud800"},
    "reward_none": {"reward": None},
    "reward_bool": {"reward": True},
    "reward_int": {"reward": 2},
    "reward_float_whole": {"reward": 2.0},
    "reward_big": {"reward": 1e300},
    "reward_str": {"reward": "0.5"},
    "done_true": {"done": True, "reward": 1.0},
    "meta": {"metadata": {"k": "v", "n": [1, 2]}, "reward": 0.5},
    "meta_empty": {"metadata": {}},
    "bigint": {"payload": 2**70},
}


def behave(action: EchoAction) -> Any:
    """Return the observation, or raise the exception, that the message asks for."""
    message = action.message
    if message.startswith("raise"):
        raise_by_name(message)
    if message in OBSERVATIONS:
        return EchoObservation(**{"echoed": message, **OBSERVATIONS[message]})
    if message == "ret_dict":
        return {"echoed": "dict"}
    if message == "ret_none":
        return None
    if message.startswith("big:"):
        return EchoObservation(echoed="x" * int(message.removeprefix("big:")))
    if message.startswith("sleep:"):
        time.sleep(float(message.removeprefix("sleep:")))
    text = message if len(message) < 200 else f"len={len(message)}"
    return EchoObservation(echoed=text * action.repeat, reward=0.1 * action.repeat)


def raise_by_name(name: str) -> None:
    """Raise the exception that `name` stands for; other names are plain text."""
    if name == "raise":
        raise ValueError("boom from step")
    if name == "raise_empty":
        raise RuntimeError
    if name == "raise_keyerror":
        raise KeyError("missing-key")
    if name == "raise_http":
        from fastapi import HTTPException  # noqa: PLC0415 - only this case needs it

        raise HTTPException(status_code=418, detail="teapot")
    if name == "raise_validation":
        EchoAction.model_validate({})


class EchoEnvironment(Environment):
    def __init__(self) -> None:
        super().__init__()
        self._state = EchoState(episode_id=None, step_count=0)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Any:
        self._state = EchoState(episode_id=episode_id or "generated", step_count=0)
        if kwargs.get("raise"):
            raise ValueError("boom from reset")
        given = f"seed={seed} episode_id={episode_id} kwargs={sorted(kwargs.items())}"
        return EchoObservation(echoed=f"reset {given}")

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        self._state.step_count += 1
        self._state.last_message = action.message[:40]
        return behave(action)

    @property
    def state(self) -> EchoState:
        return self._state


class ConcurrentEchoEnvironment(EchoEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True


class StrictResetEnvironment(ConcurrentEchoEnvironment):
    """`reset` takes a seed and nothing else."""

    def reset(self, seed: int | None = None) -> Any:
        self._state = EchoState(episode_id="strict", step_count=0)
        return EchoObservation(echoed=f"strict seed={seed!r}")


class AsyncEchoEnvironment(ConcurrentEchoEnvironment):
    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Any:
        await asyncio.sleep(0)
        return EchoEnvironment.reset(self, seed=seed, episode_id=episode_id, **kwargs)

    async def step_async(
        self, action: Any, timeout_s: float | None = None, **kwargs: Any
    ) -> Any:
        await asyncio.sleep(0)
        return EchoEnvironment.step(self, action)


class NeedsResetEnvironment(EchoEnvironment):
    def __init__(self) -> None:
        super().__init__()
        self._ready = False

    def reset(self, seed=None, episode_id=None, **kwargs) -> Any:
        self._ready = True
        return super().reset(seed=seed, episode_id=episode_id, **kwargs)

    def step(self, action, timeout_s=None, **kwargs) -> Any:
        if not self._ready:
            raise RuntimeError("call reset() first")
        return super().step(action)


class BrokenFactoryEnvironment(EchoEnvironment):
    def __init__(self) -> None:
        raise OSError("disk missing")


class ValidatorEnvironment(ConcurrentEchoEnvironment):
    """Served with `ValidatorAction`."""


def make_wrapped() -> EchoEnvironment:
    """Return an environment with coroutine functions set on the instance."""
    environment = EchoEnvironment()

    async def step_async(action, timeout_s=None, **kwargs) -> Any:
        observation = environment.step(action)
        observation.echoed = "wrapped:" + observation.echoed
        return observation

    async def reset_async(seed=None, episode_id=None, **kwargs) -> Any:
        observation = environment.reset(seed=seed, episode_id=episode_id)
        observation.echoed = "wrapped:" + observation.echoed
        return observation

    environment.step_async = step_async
    environment.reset_async = reset_async
    return environment
