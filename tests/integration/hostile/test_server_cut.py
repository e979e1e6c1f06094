"""Clients that end the connection at every byte: no step but whole ones is made."""

from __future__ import annotations

import pytest
from tests.integration.client.scripted import until
from tests.integration.hostile.frames import KEY, message, upgrade_request
from tests.integration.hostile.hostile_server import send_fin, send_rst
from tests.integration.hostile.victim import peer

STEP = message({"type": "step", "data": {"number": 7, "pad": "x" * 120}}, key=KEY)
RESET = {"type": "reset", "data": {}}


def half_close(writer):
    writer.write_eof()


LEAVES = pytest.mark.parametrize("leave", [send_fin, send_rst, half_close])


@LEAVES
async def test_a_step_cut_at_any_byte_is_not_made(victim, leave):
    sessions = len(STEP)
    before = victim.lives()
    async with victim.unharmed():
        for length in range(sessions):
            async with peer(victim) as client:
                await client.upgrade()
                await client.ask(RESET)
                await client.send(STEP[:length])
                leave(client.writer)
                if leave is half_close:
                    assert [] == await client.heard()
        await until(lambda: victim.lives()["closed"] >= before["closed"] + sessions)
    after = victim.lives()

    assert 1 + sessions == after["opened"] - before["opened"]
    assert 1 + sessions == after["closed"] - before["closed"]


async def test_no_step_is_made_of_a_part_of_one(victim):
    before = victim.lives()
    for length in range(len(STEP)):
        async with peer(victim) as client:
            await client.upgrade()
            await client.send(STEP[:length])
            client.writer.write_eof()
            await client.heard()
    after = victim.lives()

    assert before["steps"] == after["steps"]


@LEAVES
async def test_an_upgrade_cut_at_any_byte_opens_no_environment(victim, leave):
    request = upgrade_request()
    before = victim.lives()
    async with victim.unharmed():
        for length in range(len(request)):
            async with peer(victim) as client:
                await client.send(request[:length])
                leave(client.writer)
                await client.rest()
    after = victim.lives()

    assert 1 == after["opened"] - before["opened"]  # the well-behaved client's
