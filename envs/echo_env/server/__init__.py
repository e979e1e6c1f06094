"""The echo environment's server side."""

from __future__ import annotations

from echo_env.server.environment import EchoEnvironment

__all__ = ["EchoEnvironment"]
