"""Read the action schema of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import OpenEnvError
from openenv.rollout.errors import InvalidRollout, RolloutError

if TYPE_CHECKING:
    from collections.abc import Mapping


async def fetch_action_schema(
    base_url: str, headers: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Read the JSON schema of a server's action.

    Args:
        base_url: the server's URL as clients take it.
        headers: sent with the question.

    Raises:
        InvalidRollout: no client can use the URL.
        RolloutError: there is no answer, or not such an answer.
    """
    try:
        client = GenericEnvClient(base_url, headers=headers)
        schemas: object = await client.schema()
    except OpenEnvError as error:
        message = f"cannot read the action's schema: {error}"
        raise RolloutError(message) from error
    except ValueError as error:
        message = f"cannot use {base_url!r}: {error}"
        raise InvalidRollout(message) from error
    schema = schemas.get("action") if isinstance(schemas, dict) else None
    if not isinstance(schema, dict):
        message = f"{base_url} tells no action schema; give --policy"
        raise RolloutError(message)
    return schema
