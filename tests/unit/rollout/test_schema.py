"""What a rollout says of a server that tells no schema."""

from __future__ import annotations

import pytest
from tests.integration.client.scripted import free_port

from openenv.core.generic_client import GenericEnvClient
from openenv.rollout._schema import fetch_action_schema
from openenv.rollout.errors import RolloutError


async def test_a_server_that_is_not_there_is_named():
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RolloutError, match=f"cannot read the action's schema.*{url}"):
        await fetch_action_schema(url)


@pytest.mark.parametrize("answer", [[], {}, {"action": None}])
async def test_an_answer_without_a_schema_asks_for_a_policy(monkeypatch, answer):
    async def schema(_self):
        return answer

    monkeypatch.setattr(GenericEnvClient, "schema", schema)
    with pytest.raises(RolloutError, match="tells no action schema; give --policy"):
        await fetch_action_schema("http://h")
