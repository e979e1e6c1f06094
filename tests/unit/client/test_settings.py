from __future__ import annotations

import asyncio
import copy
import inspect
import pickle

import pytest

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericAction, GenericEnvClient
from openenv.core.utils import run_async_safely


def test_the_constructor_is_upstreams():
    parameters = inspect.signature(EnvClient.__init__).parameters.values()

    assert [
        ("base_url", None),
        ("connect_timeout_s", 10.0),
        ("message_timeout_s", 60.0),
        ("max_message_size_mb", 100.0),
        ("websocket_ping_interval_s", 20.0),
        ("websocket_ping_timeout_s", 20.0),
        ("provider", None),
        ("mode", None),
        ("headers", None),
    ] == [(p.name, p.default) for p in parameters if p.name != "self"]


def test_a_client_needs_an_url_or_a_provider():
    with pytest.raises(ValueError, match="requires either base_url or provider"):
        GenericEnvClient()


@pytest.mark.parametrize(
    ("given", "shown", "dialled"),
    [
        ("http://h:1/", "http://h:1", "ws://h:1/ws"),
        ("ws://h:2///", "ws://h:2", "ws://h:2/ws"),
        ("h:3", "h:3", "ws://h:3/ws"),
        ("HTTP://H/p?x=1", "HTTP://H/p?x=1", "ws://H/p/ws?x=1"),
    ],
)
def test_urls_are_shown_as_given_and_dialled_right(given, shown, dialled):
    client = GenericEnvClient(given)

    assert shown == client.base_url == client._base_url
    assert dialled == client._ws_url


def test_settings_have_upstreams_private_names():
    client = GenericEnvClient("h", 1.0, 2.0, 3.0)

    assert 1.0 == client._connect_timeout
    assert 2.0 == client._message_timeout
    assert 3 * 1024 * 1024 == client._max_message_size
    assert client._provider is None


def test_timeouts_and_url_may_be_set_later():
    client = GenericEnvClient("h")
    client._message_timeout, client._connect_timeout = 0.5, 0.25
    client._ws_url = "ws://other/ws"

    settings = client._settings
    assert (0.5, 0.25) == (settings.message_timeout_s, settings.connect_timeout_s)
    assert "ws://other/ws" == settings.ws_url


def test_the_mode_is_argument_then_variable_then_simulation(monkeypatch):
    monkeypatch.delenv("OPENENV_CLIENT_MODE", raising=False)
    assert "simulation" == GenericEnvClient("h")._mode
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "Production")
    assert "production" == GenericEnvClient("h")._mode
    assert "simulation" == GenericEnvClient("h", mode="SIMULATION")._mode


def test_the_mode_is_one_of_two_and_fixed():
    with pytest.raises(
        ValueError, match=r"Invalid mode: 'fast'\. Must be 'simulation'"
    ):
        GenericEnvClient("h", mode="fast")
    client = GenericEnvClient("h")
    with pytest.raises(AttributeError, match="Cannot modify mode"):
        client._mode = "production"
    documented = EnvClient.__init__.__doc__ or ""
    assert all(word in documented for word in ("mode", "simulation", "production"))


def test_headers_cannot_break_out_of_their_line():
    with pytest.raises(ValueError, match="line break"):
        GenericEnvClient("h", headers={"X-Token": "a\r\nHost: evil"})


def test_a_generic_action_is_a_dict_of_keywords():
    action = GenericAction(move="left", speed=2)

    assert {"move": "left", "speed": 2} == action
    assert "GenericAction(move='left', speed=2)" == repr(action)
    with pytest.raises(TypeError):
        GenericAction({"move": 1})


def test_a_step_result_is_positional_and_pickles():
    result = StepResult({"a": 1}, 0.5, True, {"k": 1})

    assert StepResult("x", None, False, None) == StepResult("x")
    assert result == pickle.loads(pickle.dumps(result)) == copy.deepcopy(result)


def test_unknown_step_keywords_are_refused_before_anything_is_sent():
    with pytest.raises(TypeError, match="speed"):
        GenericEnvClient("http://127.0.0.1:9").step({}, speed=2)


def test_run_async_safely_works_with_and_without_a_loop():
    async def answer():
        await asyncio.sleep(0)
        return 42

    async def inside():
        return run_async_safely(answer())

    async def fails():
        raise KeyError("x")

    async def fails_inside():
        run_async_safely(fails())

    assert 42 == run_async_safely(answer())
    assert 42 == asyncio.run(inside())
    with pytest.raises(KeyError):
        asyncio.run(fails_inside())


def test_the_repr_names_the_class_and_where_it_goes():
    client = GenericEnvClient("http://h")

    assert "GenericEnvClient(base_url='http://h')" == repr(client)
    assert "GenericEnvClient(base_url='http://h').sync()" == repr(client.sync())
    assert client.sync().async_client is client
