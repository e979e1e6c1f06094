"""Plain connections of one loop that share a hub: none harms another."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.integration.client.scripted import cut, raw_server, upgrade_answer
from tests.integration.hostile.frames import message, read_frame

from openenv.core._native import native
from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ServerError

if not hasattr(native, "Hub"):
    pytest.skip("Rust reads sockets on Linux only", allow_module_level=True)

ANSWER = message({"type": "observation", "data": {"observation": {}, "done": False}})
SECOND = {"it": "second"}
BIG = {"blob": "x" * 20_000_000}


@pytest.fixture
def server():
    with scripted_in_thread() as running:
        yield running


async def test_the_servers_last_words_are_heard_though_it_resets():
    words = {"type": "error", "data": {"message": "too big", "code": "MESSAGE_TOO_BIG"}}

    async def refuse(reader, writer):
        writer.write(upgrade_answer((await reader.readuntil(b"\r\n\r\n")).decode()))
        await read_frame(reader)
        writer.write(ANSWER)
        await reader.readexactly(10)
        await asyncio.sleep(0.1)  # until the client cannot send any more
        writer.write(message(words))
        cut(writer.transport)

    async with (
        raw_server(refuse) as port,
        GenericEnvClient(f"127.0.0.1:{port}") as client,
    ):
        await client.reset()
        with pytest.raises(ServerError, match="too big"):
            await client.step(BIG)


async def test_tasks_that_compute_do_not_hold_up_what_others_asked(server):
    """Answers that come together wake tasks in a row; none waits for the last."""
    arrived = []

    async def think(client):
        await client.step({"sleep": 0.1})
        time.sleep(0.02)  # noqa: ASYNC251 - a policy that computes
        arrived.append(sum(it.get("data") == SECOND for it in server.received))
        await client.step(SECOND)

    clients = [GenericEnvClient(server.url) for _ in range(20)]
    await asyncio.gather(*(client.reset() for client in clients))
    await asyncio.gather(*(think(client) for client in clients))
    await asyncio.gather(*(client.close() for client in clients))

    assert arrived[-1] >= len(clients) - 5


async def test_a_loop_that_has_wound_up_can_still_connect(server):
    client = GenericEnvClient(server.url)
    await client.reset()
    await client.close()
    await asyncio.get_running_loop().shutdown_asyncgens()
    async with GenericEnvClient(server.url) as again:
        again_reset = await again.reset()

    assert 2 == again_reset.observation["session"]


def test_a_hook_that_is_patched_on_the_base_is_called(server, monkeypatch):
    monkeypatch.setattr(EnvClient, "_parse_result", lambda _self, data: data["reward"])
    with GenericEnvClient(server.url).sync() as client:
        assert client.reset() == pytest.approx(0.5)
        assert client.step({"it": 1}) == pytest.approx(0.5)


def test_an_override_of_step_need_not_know_the_keyword(server):
    class Plain(GenericEnvClient):
        async def _step_async(self, action):
            return await super()._step_async(action | {"more": 1})

    client = Plain(server.url)
    client.reset()
    step = client.step({"it": 1})
    client.close()

    assert {"it": 1, "more": 1} == step.observation["echo"]
