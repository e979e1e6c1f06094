"""Actions from dicts and observations to dicts (upstream's names).

The server itself goes from and to bytes (`_codec`); these functions are for code
that was written against upstream.
"""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import json
from typing import Any

from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.env_server.types import Action

_BY_TYPE: dict[str, type[Action]] = {
    "call_tool": CallToolAction,
    "list_tools": ListToolsAction,
}


def routes_by_type(action_cls: type[Any]) -> bool:
    """Tell whether the data's ``type`` may choose another class than ``action_cls``.

    True for the base `Action` and the two MCP actions themselves, not for their
    subclasses (upstream).
    """
    return action_cls is Action or action_cls in _BY_TYPE.values()


def deserialize_action(action_data: dict[str, Any], action_cls: type[Any]) -> Any:
    """Make an action from decoded JSON.

    Args:
        action_data: the fields.
        action_cls: a pydantic model class; with the base `Action` and the MCP
            actions, ``type`` chooses the MCP class.

    Raises:
        pydantic.ValidationError: the data do not fit.
    """
    if routes_by_type(action_cls) and isinstance(action_data, dict):
        chosen = _BY_TYPE.get(str(action_data.get("type")))
        if chosen is not None:
            return chosen.model_validate(action_data)
    return action_cls.model_validate(action_data)


def deserialize_action_with_preprocessing(
    action_data: dict[str, Any], action_cls: type[Any]
) -> Any:
    """Make an action from a web form's fields, which are mostly text.

    JSON text in ``arguments`` of a tool call and in ``tokens`` is decoded, a
    numeric ``action_id`` becomes an integer, ``tokens`` a tensor where torch is
    installed.

    Raises:
        pydantic.ValidationError: the data do not fit.
    """
    data = dict(action_data)
    if data.get("type") == "call_tool" and isinstance(data.get("arguments"), str):
        data["arguments"] = json.loads(data["arguments"])
    if routes_by_type(action_cls) and data.get("type") in _BY_TYPE:
        return deserialize_action(data, action_cls)
    if "tokens" in data:
        data["tokens"] = _tokens(data["tokens"])
    if (
        isinstance(data.get("action_id"), str)
        and data["action_id"].lstrip("-").isdigit()
    ):
        data["action_id"] = int(data["action_id"])
    return action_cls.model_validate(data)


def serialize_observation(observation: Any) -> dict[str, Any]:
    """Return ``{"observation", "reward", "done"}`` and ``metadata`` when not empty."""
    from openenv.core.env_server._codec import observation_parts  # noqa: PLC0415 - a cycle

    parts = observation_parts(observation)
    data = {
        "observation": parts.observation,
        "reward": parts.reward,
        "done": parts.done,
    }
    if parts.metadata:
        data["metadata"] = parts.metadata
    return data


def _tokens(value: object) -> object:
    tokens = json.loads(value) if isinstance(value, str) else value
    try:
        import torch  # type: ignore[import-not-found]  # noqa: PLC0415 - optional
    except ImportError:
        return tokens
    return torch.tensor(tokens, dtype=torch.long)
