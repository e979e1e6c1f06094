"""What a server takes from the process's environment, read once an app."""

from __future__ import annotations

import os
from dataclasses import dataclass

from openenv.core.env_server.types import ServerMode

_YES = frozenset({"1", "true", "yes"})


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from environment variables.

    Attributes:
        mode: ``OPENENV_MODE``, unchecked text, None when unset.
        max_concurrent_envs: ``OPENENV_MAX_CONCURRENT_ENVS``, None when unset.
        web_interface: whether ``ENABLE_WEB_INTERFACE`` asks for the web page.
    """

    mode: str | None
    max_concurrent_envs: int | None
    web_interface: bool


def read_settings() -> Settings:
    """Read the variables.

    Raises:
        ValueError: ``OPENENV_MAX_CONCURRENT_ENVS`` is no positive integer.
    """
    variables = os.environ  # noqa: TID251 - this is the config module
    return Settings(
        mode=variables.get("OPENENV_MODE"),
        max_concurrent_envs=_positive(variables.get("OPENENV_MAX_CONCURRENT_ENVS")),
        web_interface=variables.get("ENABLE_WEB_INTERFACE", "").lower() in _YES,
    )


def server_mode(mode: ServerMode | str) -> ServerMode:
    """Parse a mode, in any case.

    Raises:
        ValueError: there is no such mode (upstream's text).
    """
    try:
        return ServerMode(mode.lower())
    except ValueError:
        valid = [member.value for member in ServerMode]
        message = f"Invalid mode: '{mode}'. Must be one of: {valid}"
        raise ValueError(message) from None


def _positive(text: str | None) -> int | None:
    """Parse a positive integer, None when unset or empty."""
    if text is None or not text.strip():
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        message = (
            f"OPENENV_MAX_CONCURRENT_ENVS must be a positive integer, not {text!r}"
        )
        raise ValueError(message)
    return number


def read_readme_path() -> str | None:
    """Return where ``ENV_README_PATH`` says the README is, None when unset or empty."""
    return os.environ.get("ENV_README_PATH") or None  # noqa: TID251 - as above
