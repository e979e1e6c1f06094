"""Play on a running server; a call that fails becomes a `Fault` that names it."""

from __future__ import annotations

import logging
import math
import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from typing_extensions import override

from openenv.cli.validation.checks import Fault, NotApplicable
from openenv.cli.validation.foreign import describe, place, plain_text
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import (
    EnvironmentFault,
    OpenEnvError,
    ServerError,
    ValidationFailed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.sync_client import SyncEnvClient

    Draw = Callable[[random.Random], dict[str, Any]]

COMPARED_STEPS: Final = 20
_LOGGER: Final = "openenv"
_HOOKS: Final = "let the client's models be those of the server, and its hooks agree"


class CallFailed(Fault):
    """A call of a session failed with `error`."""

    def __init__(self, why: str, mend: str, error: Exception) -> None:
        super().__init__(why, mend)
        self.error = error


class Raised(logging.Handler):
    """Keep what the environment raised last: a server of this process logs it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.error: BaseException | None = None
        logging.getLogger(_LOGGER).addHandler(self)

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Take the exception out of a record."""
        error = record.exc_info[1] if record.exc_info else None
        while isinstance(error, EnvironmentFault) and error.__cause__ is not None:
            error = error.__cause__
        if error is not None:
            self.error = error


@dataclass
class Stage:
    """A running server, and how to play on it.

    `concurrent` tells whether the server says that sessions are independent; None where
    only trying tells. `calls_tools` tells whether the actions are calls of tools.
    `seconds` is how long one answer may take. `typed` makes the client's own action of
    a drawn one. Where the server is of this process, `folder` is that of its code,
    `raised` what that raised, and `fresh` plays an episode in a process of its own.
    """

    url: str
    draw: Draw
    concurrent: bool | None = None
    calls_tools: bool = False
    reward_range: tuple[float, float] = (-math.inf, math.inf)
    seconds: float = 30.0
    client_class: type[EnvClient[Any, Any, Any]] | None = None
    typed: Callable[[dict[str, Any]], Any] = dict
    folder: Path | None = None
    raised: Raised | None = None
    fresh: Callable[[], str] | None = None
    episode: list[StepResult[Any]] = field(default_factory=list)
    alone: list[dict[str, Any]] = field(default_factory=list)
    leak: str = ""

    def session(
        self, cls: type[EnvClient[Any, Any, Any]] = GenericEnvClient
    ) -> Session:
        """Make a session; opened where it is entered."""
        return Session(self, cls(self.url, message_timeout_s=self.seconds).sync())


class Session:
    """One session of a stage, whose calls are counted."""

    def __init__(self, stage: Stage, client: SyncEnvClient[Any, Any, Any]) -> None:
        self.client = client
        self._stage = stage
        self._resets = 0
        self._steps = 0

    def __enter__(self) -> Self:
        with told(self._stage, "opening a session"):
            self.client.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def reset(self, **keywords: int | str) -> StepResult[Any]:
        """Begin an episode."""
        self._resets, self._steps = self._resets + 1, 0
        number = f" number {self._resets}" if self._resets > 1 else ""
        with told(self._stage, f"reset(){number}"):
            return self.client.reset(**keywords)

    def step(self, action: Any) -> StepResult[Any]:  # noqa: ANN401 - the client's type
        """Take a step."""
        self._steps += 1
        with told(self._stage, f"step() number {self._steps} with {action}"):
            return self.client.step(action)

    def state(self) -> Any:  # noqa: ANN401 - the client's type
        """Ask for the state."""
        after = f" after step {self._steps}" if self._steps else ""
        with told(self._stage, f"state(){after}"):
            return self.client.state()


@contextmanager
def told(stage: Stage, what: str) -> Iterator[None]:
    """Turn what a call raises into a fault that names the call and the line."""
    if stage.raised is not None:
        stage.raised.error = None
    try:
        yield
    except (Fault, NotApplicable):
        raise
    except Exception as error:  # noqa: BLE001 - a client's hooks may raise anything
        why, mend = _explain(stage, what.partition("(")[0], error)
        raise CallFailed(f"{what} failed: {why}", mend, error) from None


def actions_of(seed: int) -> random.Random:
    """Make the generator that draws an episode's actions."""
    # Not the generator that an environment makes of the seed: its first number may be
    # what the first action should guess.
    return random.Random(f"actions of {seed}")


def play(
    stage: Stage, session: Session, seed: int, limit: int
) -> Iterator[StepResult[Any]]:
    """Play an episode until it is done or `limit` steps are taken."""
    result, rng = session.reset(seed=seed), actions_of(seed)
    yield result
    for _ in range(limit):
        if result.done:
            return
        result = session.step(stage.draw(rng))
        yield result


def trace(stage: Stage, seed: int) -> list[dict[str, Any]]:
    """Play the beginning of an episode; return what the server answered."""
    with stage.session() as session:
        return [record(each) for each in play(stage, session, seed, COMPARED_STEPS)]


def record(result: StepResult[Any]) -> dict[str, Any]:
    """Return what two episodes are compared by."""
    return {
        "observation": result.observation,
        "reward": result.reward,
        "done": result.done,
    }


def _explain(stage: Stage, call: str, error: Exception) -> tuple[str, str]:
    """Tell why a call failed, and how to mend it."""
    cause = stage.raised.error if stage.raised is not None else None
    if isinstance(error, ValidationFailed) and error.errors:
        details = error.details.replace("\n", "; ")
        mend = f"let the client's _{call}_payload send what the server's class takes"
        return f"the server refuses {details}", mend
    if isinstance(error, ServerError) and cause is not None and stage.folder:
        mend = "mend that line"
        if not place(stage.folder, cause):
            mend = f"mend what {call}() does or returns"
        return describe(stage.folder, cause), mend
    # One of ours is a sentence; what a client's hook raises needs its name.
    if isinstance(error, OpenEnvError):
        mend = "see the server's log" if stage.folder is None else _HOOKS
        return plain_text(error), mend
    if stage.folder is None:
        return f"{type(error).__name__}: {plain_text(error)}", "see the server's log"
    return describe(stage.folder, error), _HOOKS
