"""Clients sent to other processes, or copied, are unconnected ones of like settings."""

from __future__ import annotations

import asyncio
import copy
import pickle
from dataclasses import asdict

import pytest
from tests.integration.client.in_thread import scripted_in_thread

from openenv.core.generic_client import GenericEnvClient


def pickled(value):
    return pickle.loads(pickle.dumps(value))


COPIES = [pickled, copy.copy, copy.deepcopy]


class Named(GenericEnvClient):
    """Have an attribute of its own."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.name = ["n"]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_has_the_same_settings_and_shares_none(copied):
    client = Named("http://h", 1, 2, 3, 4, 5, mode="production", headers={"A": "b"})
    twin = copied(client)
    twin._message_timeout = 9

    assert (Named, ["n"], "production") == (type(twin), twin.name, twin._mode)
    assert 2 == client._message_timeout
    client._message_timeout = 9
    assert asdict(client._settings) == asdict(twin._settings)
    assert client._home is not twin._home


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_a_connected_client_has_a_session_of_its_own(copied):
    with scripted_in_thread() as server, GenericEnvClient(server.url) as client:
        first = client.reset()
        client.step({"it": 1})
        with copied(client) as twin:
            second = twin.reset()
        still = client.step({"it": 2})

    assert [1, 2] == [r.observation["session"] for r in (first, second)]
    assert (1, 2) == (still.observation["session"], still.observation["steps"])


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_a_client_on_a_loop_is_unconnected(copied):
    async def main(url):
        async with GenericEnvClient(url) as client:
            await client.reset()
            return copied(client)._home.link.is_in_use

    with scripted_in_thread() as server:
        assert not asyncio.run(main(server.url))


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_the_blocking_face_is_a_face_of_a_copy(copied):
    face = GenericEnvClient("http://h").sync()
    twin = copied(face)

    assert type(face) is type(twin)
    assert "http://h" == twin.base_url
    assert twin.async_client is not face.async_client
    assert twin.async_client.sync() is twin


@pytest.mark.parametrize("copied", COPIES)
def test_a_client_that_stops_a_container_cannot_be_doubled(copied):
    client = GenericEnvClient(provider=object())
    with pytest.raises(TypeError, match="GenericEnvClient has a provider"):
        copied(client)
    with pytest.raises(TypeError, match="GenericEnvClient has a provider"):
        copied(client.sync())
