"""Read the action schema of a running server."""

from __future__ import annotations

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import OpenEnvError
from openenv.rollout.errors import RolloutError


async def fetch_action_schema(base_url: str) -> dict[str, object]:
    """Read the JSON schema of a server's action.

    Args:
        base_url: the server's URL as clients take it.

    Raises:
        RolloutError: there is no answer, or not such an answer.
    """
    try:
        schemas: object = await GenericEnvClient(base_url).schema()
    except OpenEnvError as error:
        message = f"cannot read the action's schema: {error}"
        raise RolloutError(message) from error
    schema = schemas.get("action") if isinstance(schemas, dict) else None
    if not isinstance(schema, dict):
        message = f"{base_url} tells no action schema; give --policy"
        raise RolloutError(message)
    return schema
