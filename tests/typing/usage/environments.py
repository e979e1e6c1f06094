"""Environments, and the applications that serve them."""

from __future__ import annotations

from typing import Any, assert_type

from fastapi import FastAPI

from openenv.core.env_server import (
    Action,
    CompositeTransform,
    ConcurrencyConfig,
    Environment,
    HTTPEnvServer,
    NullTransform,
    Observation,
    Server,
    State,
    Transform,
    create_app,
    create_fastapi_app,
    serve,
)
from openenv.core.structs import ActionStruct, ObservationStruct, StateStruct


class Guess(Action):
    number: int


class Hint(Observation):
    text: str = ""


class GuessEnvironment(Environment[Guess, Hint, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, secret: int = 7) -> None:
        super().__init__()
        self._secret = secret
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Hint:
        self._state = State(episode_id=episode_id)
        return Hint(text="a number")

    def step(
        self, action: Guess, timeout_s: float | None = None, **kwargs: Any
    ) -> Hint:
        return Hint(done=action.number == self._secret, reward=1.0)

    @property
    def state(self) -> State:
        return self._state


class AsyncEnvironment(GuessEnvironment):
    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Hint:
        return await super().reset_async(seed, episode_id, **kwargs)

    async def step_async(
        self, action: Guess, timeout_s: float | None = None, **kwargs: Any
    ) -> Hint:
        return await super().step_async(action, timeout_s, **kwargs)


class StructEnvironment(Environment[ActionStruct, ObservationStruct, StateStruct]):
    EXECUTION = "dedicated"

    def reset(self, *args: Any, **kwargs: Any) -> ObservationStruct:
        return ObservationStruct()

    def step(
        self, action: ActionStruct, timeout_s: float | None = None, **kwargs: Any
    ) -> ObservationStruct:
        return ObservationStruct(reward=1.0)

    @property
    def state(self) -> StateStruct:
        return StateStruct()


class Louder(Transform[Hint]):
    def __call__(self, observation: Hint) -> Hint:
        return Hint(text=observation.text.upper())


class WrongEnvironment(Environment[Guess, Hint, State]):
    def reset(  # expect: override, reportIncompatibleMethodOverride
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> str:
        return "a number"

    def step(  # expect: reportIncompatibleMethodOverride
        self,
        action: str,  # expect: override
        timeout_s: float | None = None,
        **kwargs: Any,
    ) -> Hint:
        return Hint(text=action)


WrongEnvironment()  # expect: abstract, reportAbstractUsage


def playing() -> None:
    environment = GuessEnvironment()
    reveal_type(environment.reset(seed=1))  # reveals: Hint
    assert_type(environment.step(Guess(number=1)).reward, bool | int | float | None)
    assert_type(environment.state, State)
    assert_type(AsyncEnvironment().step(Guess(number=1)), Hint)
    assert_type(CompositeTransform([Louder(), NullTransform()])(Hint()), Hint)
    environment.step(3)  # expect: arg-type, reportArgumentType
    Guess(numbr=3)  # expect: call-arg, reportCallIssue
    Hint(done="yes")  # expect: arg-type, reportArgumentType


def serving() -> None:
    app = create_app(GuessEnvironment, Guess, Hint, env_name="guess")
    reveal_type(app)  # reveals: FastAPI
    assert_type(create_fastapi_app(lambda: GuessEnvironment(3), Guess, Hint), FastAPI)
    create_app(
        StructEnvironment, ActionStruct, ObservationStruct, state_cls=StateStruct
    )
    create_app(GuessEnvironment, dict, dict, mode="production")
    limits = ConcurrencyConfig(max_concurrent_envs=64, session_timeout=600.0)
    server = HTTPEnvServer(GuessEnvironment, Guess, Hint, concurrency_config=limits)
    assert_type(server.active_sessions, int)
    assert_type(Server(app, port=0).port, int)
    serve(app, port=8000, on_ready=lambda host, port: print(f"{host}:{port}"))
    # expect: arg-type, reportArgumentType
    create_app(GuessEnvironment(), Guess, Hint)
    # expect: call-arg, reportCallIssue
    create_app(GuessEnvironment, Guess)
    # expect: call-arg, reportCallIssue
    create_app(GuessEnvironment, Guess, Hint, max_envs=2)
    # expect: arg-type, reportArgumentType
    serve(app, "0.0.0.0", "8000")
    # expect: arg-type, reportArgumentType
    ConcurrencyConfig(max_concurrent_envs="64")
