"""The data types of the wire and of environments: actions, observations, states.

Field names, defaults and limits are upstream's (``core/env_server/types.py``):
peers of any version exchange these shapes.  Loads pydantic and nothing of a web
framework, so that clients may import it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Scalar = int | float | bool


class ServerMode(StrEnum):
    """What a server offers: everything, or no HTTP control routes."""

    SIMULATION = "simulation"
    PRODUCTION = "production"


class HealthStatus(StrEnum):
    """Answer of ``GET /health``."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    DEGRADED = "degraded"


class WSErrorCode(StrEnum):
    """The ``code`` of an error frame.

    The last two are ours; a stock server never sends them.
    """

    INVALID_JSON = "INVALID_JSON"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    CAPACITY_REACHED = "CAPACITY_REACHED"
    FACTORY_ERROR = "FACTORY_ERROR"
    SESSION_ERROR = "SESSION_ERROR"
    SESSION_EXPIRED = "SESSION_EXPIRED"
    STEP_TIMEOUT = "STEP_TIMEOUT"


class Action(BaseModel):
    """What an agent does; subclass it with the fields of your environment."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", validate_assignment=True, arbitrary_types_allowed=True
    )

    metadata: dict[str, Any] = Field(
        default_factory=dict, description="Free-form data that goes with the action"
    )


class Observation(BaseModel):
    """What an agent sees after a reset or a step; subclass it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", validate_assignment=True, arbitrary_types_allowed=True
    )

    done: bool = Field(default=False, description="True when the episode is over")
    reward: bool | int | float | None = Field(
        default=None, description="Reward of the last action; null when there is none"
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description="Free-form data that goes with the observation",
    )


class State(BaseModel):
    """What an environment tells about itself beside observations."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", validate_assignment=True, arbitrary_types_allowed=True
    )

    episode_id: str | None = Field(
        default=None, description="Name of the running episode"
    )
    step_count: int = Field(
        default=0, ge=0, description="Steps taken in the running episode"
    )


class ResetRequest(BaseModel):
    """Body of ``POST /reset``; unknown keys go to ``reset`` as keywords."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [{"seed": 7, "episode_id": "episode-7"}, {}],
        },
    )

    seed: int | None = Field(
        default=None, ge=0, description="Seed of the episode's random numbers"
    )
    episode_id: str | None = Field(
        default=None, max_length=255, description="Name to give the episode"
    )


class _ControlResponse(BaseModel):
    """What both control routes answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    observation: dict[str, Any] = Field(
        ..., description="Observation without reward and done"
    )
    reward: float | None = Field(default=None, description="Reward, if there is one")
    done: bool = Field(default=False, description="True when the episode is over")
    metadata: dict[str, Any] | None = Field(
        default=None, description="The observation's metadata when not empty"
    )


class ResetResponse(_ControlResponse):
    """Answer of ``POST /reset``."""


class StepRequest(BaseModel):
    """Body of ``POST /step``; unknown keys go to ``step`` as keywords."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    action: dict[str, Any] = Field(..., description="Fields of the action")
    timeout_s: float | None = Field(
        default=None, gt=0, description="Time the step may take, in seconds"
    )
    request_id: str | None = Field(
        default=None, max_length=255, description="Name of this request"
    )


class StepResponse(_ControlResponse):
    """Answer of ``POST /step``."""


class BaseMessage(BaseModel):
    """Base of messages that allow no unknown keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", validate_assignment=True
    )


class CodeExecResult(BaseMessage):
    """What running a piece of code printed and returned."""

    stdout: str = Field(..., description="Standard output")
    stderr: str = Field(..., description="Standard error")
    exit_code: int = Field(..., description="Exit code, 0 for success")


class EnvironmentMetadata(BaseMessage):
    """Answer of ``GET /metadata``."""

    name: str = Field(..., description="Name of the environment")
    description: str = Field(..., description="What the environment is")
    readme_content: str | None = Field(default=None, description="Text of the README")
    version: str | None = Field(default=None, description="Version")
    author: str | None = Field(default=None, description="Author")
    documentation_url: str | None = Field(
        default=None, description="Where its documentation is"
    )


class SchemaResponse(BaseMessage):
    """Answer of ``GET /schema``: JSON schemas of the environment's types."""

    action: dict[str, Any] = Field(..., description="JSON schema of actions")
    observation: dict[str, Any] = Field(..., description="JSON schema of observations")
    state: dict[str, Any] = Field(..., description="JSON schema of the state")
    reset_observation: dict[str, Any] | None = Field(
        default=None, description="JSON schema of what a reset returns"
    )


class HealthResponse(BaseMessage):
    """Answer of ``GET /health``."""

    status: HealthStatus = Field(
        default=HealthStatus.HEALTHY, description="How the server is"
    )


class WSResetMessage(BaseMessage):
    """Start an episode; ``data`` are keywords of ``reset``."""

    type: Literal["reset"] = "reset"
    data: dict[str, Any] = Field(default_factory=dict)


class WSStepMessage(BaseMessage):
    """Take a step; ``data`` is the action itself."""

    type: Literal["step"] = "step"
    data: dict[str, Any]


class WSStateMessage(BaseMessage):
    """Ask for the state."""

    type: Literal["state"] = "state"


class WSCloseMessage(BaseMessage):
    """End the session."""

    type: Literal["close"] = "close"


WSIncomingMessage = Annotated[
    WSResetMessage | WSStepMessage | WSStateMessage | WSCloseMessage,
    Field(discriminator="type"),
]


class WSObservationResponse(BaseModel):
    """Reply to reset and step."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    type: Literal["observation"] = "observation"
    data: dict[str, Any]


class WSStateResponse(BaseModel):
    """Reply to state."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    type: Literal["state"] = "state"
    data: dict[str, Any]


class WSErrorResponse(BaseModel):
    """Reply to anything that failed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    type: Literal["error"] = "error"
    data: dict[str, Any]


class ConcurrencyConfig(BaseMessage):
    """How many sessions a server holds and for how long.

    ``session_timeout`` is in seconds and counts idle time only: a session whose
    step runs is never idle.  ``max_abandoned_sessions`` (ours) bounds sessions
    whose client went away during a step that cannot be cancelled; above it new
    sessions are refused.  By default a quarter of ``max_concurrent_envs``, at
    least one.
    """

    max_concurrent_envs: int = Field(default=1, ge=1)
    session_timeout: float | None = Field(default=None, gt=0)
    max_abandoned_sessions: int | None = Field(default=None, ge=0)


class ServerCapacityStatus(BaseMessage):
    """How full a server is."""

    active_sessions: int = Field(..., ge=0)
    max_sessions: int = Field(..., ge=1)

    @model_validator(mode="after")
    def _within_limit(self) -> Self:
        if self.active_sessions > self.max_sessions:
            message = (
                f"active_sessions ({self.active_sessions}) is above "
                f"max_sessions ({self.max_sessions})"
            )
            raise ValueError(message)
        return self

    @property
    def available_slots(self) -> int:
        """Sessions that may still be opened."""
        return self.max_sessions - self.active_sessions

    @property
    def is_at_capacity(self) -> bool:
        """Whether no session may be opened."""
        return self.available_slots == 0

    @classmethod
    def from_counts(cls, active: int, max_sessions: int) -> ServerCapacityStatus:
        """Build the status from the two counts."""
        return cls(active_sessions=active, max_sessions=max_sessions)


class SessionInfo(BaseMessage):
    """What a server knows about one session; times are Unix seconds."""

    session_id: str
    created_at: float
    last_activity_at: float
    step_count: int = Field(default=0, ge=0)
    environment_type: str
