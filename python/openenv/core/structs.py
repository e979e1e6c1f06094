"""Base classes of actions, observations and states as msgspec structs.

Several times faster than pydantic models, with the same fields on the wire.

Example:
    >>> import msgspec
    >>> class Move(ActionStruct):
    ...     dx: int = 0
    >>> msgspec.json.decode(b'{"dx": 2}', type=Move).dx
    2
"""

from __future__ import annotations

from typing import Any

import msgspec


class ActionStruct(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of actions; unknown fields are refused as by `Action`."""

    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class ObservationStruct(msgspec.Struct, kw_only=True):
    """Base of observations; ``done`` and ``reward`` travel beside the fields."""

    done: bool = False
    reward: bool | int | float | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class StateStruct(msgspec.Struct, kw_only=True):
    """Base of states."""

    episode_id: str | None = None
    step_count: int = 0
