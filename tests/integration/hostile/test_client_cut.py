"""Servers that end the connection at every byte: never a wrong answer, never a hang."""

from __future__ import annotations

import pytest
from tests.integration.client.scripted import upgrade_answer
from tests.integration.hostile.frames import message
from tests.integration.hostile.hostile_server import (
    answer_to,
    hostile,
    send_fin,
    send_rst,
    works,
)
from tests.integration.hostile.measures import leaving_nothing

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed, ConnectionClosed, RemoteProtocolError

ACTION = {"it": "cut"}
ANSWER = message(answer_to({"data": ACTION}))
LONG_ANSWER = message(answer_to({"data": ACTION}) | {"ext": {"pad": "x" * 200}})
HEAD_KEY = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
ENDS = pytest.mark.parametrize("leave", [send_fin, send_rst])


@ENDS
@pytest.mark.parametrize("answer", [ANSWER, LONG_ANSWER], ids=["short", "long"])
async def test_an_answer_cut_at_any_byte_is_closed_and_never_an_answer(leave, answer):
    told = []
    async with leaving_nothing(), hostile() as server:
        client = GenericEnvClient(server.url)
        for length in range(len(answer)):
            cut = server.instead_of_an_answer(answer[:length], leave)
            server.behaviours.append(cut)
            await client.reset()
            with pytest.raises(ConnectionClosed) as closed:
                await client.step(ACTION, timeout_s=5)
            told.append(closed.value.code)
        await works(client)
        await client.close()

    assert [1006] * len(answer) == told


async def test_an_answer_that_came_whole_before_the_fin_is_the_answer():
    async with leaving_nothing(), hostile() as server:
        server.behaviours.append(server.instead_of_an_answer(ANSWER, send_fin))
        async with GenericEnvClient(server.url) as client:
            await client.reset()
            step = await client.step(ACTION, timeout_s=5)

    assert ACTION == step.observation["echo"]


async def test_an_answer_cut_short_but_whole_as_a_frame_is_no_answer():
    text = ANSWER[2:]
    async with leaving_nothing(), hostile() as server:
        client = GenericEnvClient(server.url)
        for length in range(len(text)):
            whole = bytes([0x81, length]) + text[:length]
            server.behaviours.append(server.instead_of_an_answer(whole))
            await client.reset()
            with pytest.raises(RemoteProtocolError):
                await client.step(ACTION, timeout_s=5)
        await works(client)
        await client.close()


@ENDS
async def test_an_upgrade_cut_at_any_byte_is_a_connect_failure(leave):
    size = len(upgrade_answer(HEAD_KEY))
    told = []

    def cutting(length):
        async def behave(reader, writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            writer.write(upgrade_answer(head)[:length])
            leave(writer)

        return behave

    async with leaving_nothing(), hostile() as server:
        client = GenericEnvClient(server.url, connect_timeout_s=5)
        for length in range(size):
            server.behaviours.append(cutting(length))
            with pytest.raises(ConnectFailed) as failed:
                await client.connect()
            told.append(failed.value.url)
        await works(client)
        await client.close()

    assert size == len(told)
