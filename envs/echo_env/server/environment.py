"""The echo environment: two tools, and a reward for what was echoed.

| tool | gives | reward of the step |
|---|---|---|
| `echo_message(message)` | the message | 0.1 a character |
| `echo_with_length(message)` | the message and its length | 0.1 a character |

A call that fails gives 0.0. A tool called by name, past `step`, gives no reward.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fastmcp import FastMCP
from typing_extensions import override

from echo_env.models import EchoObservation
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.env_server.types import (
    Action,
    EnvironmentMetadata,
    Observation,
    State,
)

GREETING = "Echo environment ready!"
REWARD_PER_CHARACTER = 0.1


class EchoEnvironment(MCPEnvironment):
    """Echoes; an episode never ends by itself."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(make_tools())
        self._state = State()

    @override
    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> EchoObservation:
        """Start an episode.

        Args:
            seed: ignored; nothing here is random.
            episode_id: name of the episode; None makes one.
            **kwargs: ignored, as upstream's interface allows more.
        """
        self._state = State(episode_id=episode_id or str(uuid4()))
        return EchoObservation(echoed_message=GREETING, reward=0.0)

    @override
    def step(
        self, action: Any, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        """Call a tool; arguments as `MCPEnvironment.step`."""
        return self._counted(action, super().step(action, timeout_s, **kwargs))

    @override
    async def step_async(
        self, action: Any, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        """Call a tool; arguments as `MCPEnvironment.step_async`."""
        observation = await super().step_async(action, timeout_s, **kwargs)
        return self._counted(action, observation)

    @property
    @override
    def state(self) -> State:
        """Tell the episode and its number of steps."""
        return self._state

    @override
    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the environment to catalogues and web pages."""
        return EnvironmentMetadata(
            name="echo_env",
            description="Echoes messages; the smallest environment with tools",
            version="0.1.0",
        )

    @override
    def _step_impl(
        self, action: Action, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        message = (
            f"{type(action).__name__} is no action of this environment: "
            "use ListToolsAction or CallToolAction"
        )
        raise ValueError(message)

    def _counted(self, action: Action, observation: Observation) -> Observation:
        self._state.step_count += 1
        if isinstance(action, CallToolAction):
            failed = getattr(observation, "error", None) is not None
            echoed = "" if failed else action.arguments["message"]
            observation.reward = REWARD_PER_CHARACTER * len(echoed)
        return observation


def make_tools() -> FastMCP[None]:
    """Make the server of the two tools."""
    server: FastMCP[None] = FastMCP("echo_env")

    @server.tool
    async def echo_message(message: str) -> str:
        """Echo a message back."""
        return message

    @server.tool
    async def echo_with_length(message: str) -> dict[str, Any]:
        """Echo a message back with its length."""
        return {"message": message, "length": len(message)}

    return server
