"""What environment authors write: `Environment` and `Transform`.

Upstream's names and signatures (``core/env_server/interfaces.py``).  Loads no web
framework: clients share these types.
"""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypedDict, TypeVar

from openenv.core.env_server.types import (
    Action,
    EnvironmentMetadata,
    Observation,
    State,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ActT",
    "Action",
    "Environment",
    "EnvironmentMetadata",
    "Message",
    "ModelTokenizer",
    "ObsT",
    "Observation",
    "State",
    "StateT",
    "Transform",
    "overrides_method",
]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")


class Message(TypedDict):
    """One message of a chat."""

    role: str
    content: str


class ModelTokenizer(Protocol):
    """The part of a tokenizer that chat environments use."""

    def apply_chat_template(
        self,
        conversation: list[Message],
        tokenize: bool = True,  # noqa: FBT001, FBT002, RUF100 - upstream's signature
        return_tensors: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Turn a conversation into text or token ids."""

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,  # noqa: FBT001, FBT002, RUF100 - upstream
        **kwargs: Any,
    ) -> str:
        """Turn token ids into text."""


class Transform(ABC, Generic[ObsT]):
    """A function from observation to observation, for instance one that rewards."""

    @abstractmethod
    def __call__(self, observation: ObsT) -> ObsT:
        """Return the changed observation."""


class Environment(ABC, Generic[ActT, ObsT, StateT]):
    """One world an agent acts in; a session owns one instance.

    A subclass writes ``reset``, ``step`` and ``state``.  One that writes
    ``reset_async`` or ``step_async`` as well is *asynchronous*: those run on the
    environment loop, a thread of their own that is never the I/O loop.  The methods
    of a synchronous one run on the session's thread, one call at a time.

    Example:
        >>> from openenv.core.env_server.types import Action, Observation, State
        >>> class Counter(Environment[Action, Observation, State]):
        ...     SUPPORTS_CONCURRENT_SESSIONS = True
        ...
        ...     def reset(self, seed=None, episode_id=None, **kwargs):
        ...         self.count = State(episode_id=episode_id)
        ...         return Observation()
        ...
        ...     def step(self, action, timeout_s=None, **kwargs):
        ...         self.count.step_count += 1
        ...         return Observation(reward=1.0)
        ...
        ...     @property
        ...     def state(self):
        ...         return self.count
    """

    SUPPORTS_CONCURRENT_SESSIONS: bool = False
    """Whether several instances may live in one process."""

    REQUIRES_SINGLE_THREAD_EXECUTOR: bool = False
    """Whether all instances must share one thread."""

    EXECUTION: Literal["thread", "dedicated"] = "thread"
    """On which threads the methods of a synchronous environment run.

    ``"thread"``: a session keeps its thread, shared with others above 32 sessions,
    unless another session's step holds it for 20 ms: then it moves. ``"dedicated"``:
    each session has a thread of its own for its whole life, for what is bound to the
    thread that made it (a ``sqlite3`` connection, Playwright).
    """

    def __init__(
        self, transform: Transform[ObsT] | None = None, rubric: Any | None = None
    ) -> None:
        """Keep the transform and the rubric.

        Args:
            transform: what `_apply_transform` applies.
            rubric: what `_apply_rubric` asks for the reward.
        """
        self.transform = transform
        self.rubric = rubric

    @abstractmethod
    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> ObsT:
        """Start an episode and return its first observation."""

    @abstractmethod
    def step(self, action: ActT, timeout_s: float | None = None, **kwargs: Any) -> ObsT:
        """Do ``action`` and return what is seen then.

        Args:
            action: the validated action.
            timeout_s: time the caller allows, in seconds.
            kwargs: what else the caller sent.
        """

    @property
    @abstractmethod
    def state(self) -> StateT:
        """The state: a pydantic model, msgspec struct, dataclass or dict."""

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> ObsT:
        """Start an episode; calls `reset` unless overridden."""
        return self.reset(seed=seed, episode_id=episode_id, **kwargs)

    async def step_async(
        self, action: ActT, timeout_s: float | None = None, **kwargs: Any
    ) -> ObsT:
        """Do ``action``; calls `step` unless overridden."""
        return self.step(action, timeout_s=timeout_s, **kwargs)

    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the environment for ``GET /metadata``."""
        name = type(self).__name__
        return EnvironmentMetadata(
            name=name, description=f"{name} environment", version="1.0.0"
        )

    def close(self) -> None:
        """Release what the environment holds; called once, on the session's thread."""

    def render_web(self, observation: dict[str, Any]) -> str | None:
        """Return HTML that shows the serialized observation, or None."""
        del observation
        return None

    def web_actions(
        self, observation: dict[str, Any]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return (label, action) pairs to offer as buttons."""
        del observation
        return []

    def _apply_transform(self, observation: ObsT) -> ObsT:
        """Return the transformed observation, or itself without a transform."""
        return observation if self.transform is None else self.transform(observation)

    def _apply_rubric(self, action: ActT, observation: ObsT) -> float:
        """Return the rubric's score, 0.0 without a rubric."""
        if self.rubric is None:
            return 0.0
        score: float = self.rubric(action, observation)
        return score

    async def _apply_rubric_async(self, action: ActT, observation: ObsT) -> float:
        """Return the score of a rubric that may be asynchronous."""
        if self.rubric is None:
            return 0.0
        score = self.rubric(action, observation)
        result: float = await score if inspect.isawaitable(score) else score
        return result

    def _reset_rubric(self) -> None:
        """Let the rubric forget the last episode."""
        if self.rubric is not None:
            self.rubric.reset()

    async def _reset_rubric_async(self) -> None:
        """Let the rubric forget the last episode, asynchronously if it can."""
        if self.rubric is None:
            return
        reset_async = getattr(self.rubric, "reset_async", None)
        if reset_async is None:
            self.rubric.reset()
        else:
            await reset_async()


def overrides_method(owner: object, name: str) -> bool:
    """Tell whether a class or an instance replaces `Environment`'s method.

    Functions set on an instance and wrapped methods count (upstream 0.10).

    Args:
        owner: an environment or its class.
        name: for instance ``"step_async"``.
    """
    method: Callable[..., object] | None = getattr(owner, name, None)
    if method is None:
        return False
    return getattr(method, "__func__", method) is not getattr(Environment, name)
