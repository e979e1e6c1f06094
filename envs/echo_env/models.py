"""What the echo environment says beyond the observations of tools."""

from __future__ import annotations

from pydantic import Field

from openenv.core.env_server.types import Observation


class EchoObservation(Observation):
    """What a reset shows."""

    echoed_message: str = Field(description="a greeting; nothing was said yet")
