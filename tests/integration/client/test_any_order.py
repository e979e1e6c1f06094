"""Whatever happens around it, a call gets its own answer or an error by name."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.integration.client.scripted import scripted

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import OpenEnvError

CALLS = 60


class Player:
    """Do random things with one client, several at a time, and check each answer."""

    def __init__(self, client, seed):
        self.client = client
        self.random = random.Random(seed)
        self.serial = 0
        self.answered = self.failed = 0

    async def play(self):
        await self._survives(self.client.reset(it="first"), "first")
        while self.serial < CALLS:
            width = self.random.randint(1, 4)
            await asyncio.gather(*(self._one() for _ in range(width)))
        await self.client.close()

    async def _one(self):
        self.serial += 1
        it = f"{id(self)}-{self.serial}"
        action = {"it": it, "sleep": self.random.choice([0, 0, 0.002, 0.02])}
        kind = self.random.randrange(12)
        if kind == 0:
            await self._survives(self.client.reset(it=it), it)
        elif kind == 1:
            await self._survives(self.client.step({**action, "drop": 1}), it)
        elif kind == 2:
            await self._cancelled(self.client.step_async(action), it)
        elif kind == 3:
            await self._survives(self.client.step(action, timeout_s=0.005), it)
        else:
            await self._survives(self.client.step(action), it)

    async def _survives(self, call, it):
        try:
            result = await call
        except OpenEnvError:
            self.failed += 1
        else:
            assert it == result.observation["echo"]["it"]
            self.answered += 1

    async def _cancelled(self, call, it):
        task = asyncio.ensure_future(self._survives(call, it))
        await asyncio.sleep(self.random.random() / 100)
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled() or task.exception() is None


@pytest.mark.parametrize("seed", range(5))
async def test_each_call_gets_its_own_answer_or_an_error_by_name(seed):
    async with scripted() as server:
        players = [
            Player(GenericEnvClient(server.url, message_timeout_s=5), seed * 100 + n)
            for n in range(8)
        ]
        await asyncio.gather(*(player.play() for player in players))
        await server.until(lambda: not server.connections)

    assert all(player.answered > CALLS / 10 for player in players)
    assert sum(player.failed for player in players) > 0
    assert 1 == len(asyncio.all_tasks())
