"""A client for any environment, in dicts (upstream: core/generic_client.py)."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

from typing import Any

from typing_extensions import override

from openenv.core.env_client import EnvClient

__all__ = ["GenericAction", "GenericEnvClient"]


class GenericEnvClient(EnvClient[dict[str, Any], dict[str, Any], dict[str, Any]]):
    """Drive any environment without its models: all values are dicts.

    Example:
        >>> client = GenericEnvClient("http://localhost:8000")
        >>> client.base_url
        'http://localhost:8000'
    """


class GenericAction(dict[str, Any]):
    """Be an action made of keywords.

    Example:
        >>> GenericAction(move="left", speed=2)
        GenericAction(move='left', speed=2)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(kwargs)

    @override
    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.items())
        return f"GenericAction({fields})"
