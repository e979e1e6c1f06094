"""Our client against upstream's real server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.conformance.golden.environments import (
    EchoAction,
    EchoObservation,
    EchoState,
)

from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import (
    CapacityReached,
    ExecutionFailed,
    RequestTimeout,
    ValidationFailed,
)

if TYPE_CHECKING:
    from tests.peers.conftest import Peer
    from tests.support.golden_servers import GoldenServers

SESSIONS = 64


class EchoClient(EnvClient[EchoAction, EchoObservation, EchoState]):
    """Decodes by its type arguments alone."""


@pytest.fixture
def url(peer_servers: GoldenServers) -> str:
    return f"http://127.0.0.1:{peer_servers.port('many')}"


async def test_an_episode_with_typed_models(url: str):
    async with EchoClient(base_url=url) as client:
        reset = await client.reset(seed=7, episode_id="peer")
        step = await client.step(EchoAction(message="hi", repeat=2))
        state = await client.state()

    assert reset.observation.echoed == "reset seed=7 episode_id=peer kwargs=[]"
    assert (step.observation.echoed, step.reward, step.done) == ("hihi", 0.2, False)
    assert state == EchoState(episode_id="peer", step_count=1, last_message="hi")


async def test_metadata_reaches_the_result_and_the_observation(url: str, peer: Peer):
    expected = {} if peer.is_old else {"k": "v", "n": [1, 2]}  # which drops it
    async with EchoClient(base_url=url) as client:
        await client.reset()
        step = await client.step(EchoAction(message="meta"))

    assert expected == (step.metadata or {}) == step.observation.metadata


async def test_errors_are_typed_and_the_session_lives(url: str):
    async with GenericEnvClient(base_url=url) as client:
        await client.reset()
        with pytest.raises(ExecutionFailed) as failed:
            await client.step({"message": "raise"})
        with pytest.raises(ValidationFailed) as refused:
            await client.step({"message": 5})
        alive = await client.step({"message": "alive"})

    expected = "Server error: boom from step (code: EXECUTION_ERROR)"
    assert expected == str(failed.value)
    assert [error["loc"] for error in refused.value.errors] == [["message"]]
    assert alive.observation["echoed"] == "alive"


async def test_the_answer_of_a_timed_out_step_never_reaches_the_next_call(url: str):
    async with GenericEnvClient(base_url=url, message_timeout_s=5.0) as client:
        await client.reset()
        with pytest.raises(RequestTimeout):
            await client.step({"message": "sleep:0.6"}, timeout_s=0.2)
        second = await client.step({"message": "SECOND"})
        state = await client.state()

    assert second.observation["echoed"] == "SECOND"
    assert state["step_count"] == 2


async def test_the_answer_of_a_cancelled_step_never_reaches_the_next_call(url: str):
    async with GenericEnvClient(base_url=url) as client:
        await client.reset()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.step({"message": "sleep:0.6"}), 0.2)
        second = await client.step({"message": "NEW"})

    assert second.observation["echoed"] == "NEW"


async def test_four_calls_at_once_are_answered_in_their_order(url: str):
    async with GenericEnvClient(base_url=url) as client:
        await client.reset()
        calls = [client.step({"message": f"call {number}"}) for number in range(4)]
        results = await asyncio.gather(*calls)

    expected = [f"call {number}" for number in range(4)]
    assert expected == [result.observation["echoed"] for result in results]


async def test_sixty_four_sessions_and_the_refusal_of_one_more(url: str):
    clients = [GenericEnvClient(base_url=url) for _ in range(SESSIONS)]
    await asyncio.gather(*(client.connect() for client in clients))
    await asyncio.gather(*(client.reset() for client in clients))
    calls = [
        client.step({"message": f"session {number}"})
        for number, client in enumerate(clients)
    ]
    results = await asyncio.gather(*calls)
    late = GenericEnvClient(base_url=url)
    with pytest.raises(CapacityReached) as refused:
        await late.reset()
    await asyncio.gather(*(client.close() for client in clients))
    await late.close()

    expected = [f"session {number}" for number in range(SESSIONS)]
    assert expected == [result.observation["echoed"] for result in results]
    assert (refused.value.active_sessions, refused.value.max_sessions) == (64, 64)


def test_the_blocking_face(url: str):
    with EchoClient(base_url=url).sync() as client:
        client.reset(seed=1)
        step = client.step(EchoAction(message="hi"))
        state = client.state()

    assert (step.observation.echoed, state.step_count) == ("hi", 1)


async def test_twenty_megabytes_each_way(url: str):
    size = 20 * 1024 * 1024
    async with GenericEnvClient(base_url=url) as client:
        await client.reset()
        received = await client.step({"message": f"big:{size}"})
        sent = await client.step({"message": "y" * size})

    assert len(received.observation["echoed"]) == size
    assert sent.observation["echoed"] == f"len={size}"
