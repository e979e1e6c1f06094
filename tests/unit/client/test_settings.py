from __future__ import annotations

import asyncio
import copy
import inspect
import math
import pickle
import sys
from fractions import Fraction

import numpy as np
import pytest

from openenv.core._client.dial import parse_address
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericAction, GenericEnvClient
from openenv.core.utils import run_async_safely


def test_the_constructor_is_upstreams():
    _, *parameters = inspect.signature(EnvClient.__init__).parameters.values()
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]

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
    ] == [(p.name, p.default) for p in positional]


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


def test_headers_may_be_pairs():
    pairs = [("a", "b"), ("a", "c")]

    assert tuple(pairs) == tuple(GenericEnvClient("h", headers=pairs)._settings.headers)
    assert (("a", "b"),) == GenericEnvClient("h", headers={"a": "b"})._settings.headers
    assert () == GenericEnvClient("h", headers=iter(()))._settings.headers


@pytest.mark.parametrize("value", [1, None, b"x", ["x"]])
def test_a_header_that_is_no_text_is_refused_by_name(value):
    with pytest.raises(TypeError, match=r"header 'X-A' must be a str, not \w+"):
        GenericEnvClient("h", headers={"X-A": value})
    with pytest.raises(TypeError, match=r"header names must be str, not"):
        GenericEnvClient("h", headers=[(value, "x")])


@pytest.mark.parametrize("headers", ["a", ["ab"], [("a",)], [("a", "b", "c")], 7])
def test_what_is_no_headers_is_refused(headers):
    with pytest.raises(
        TypeError, match=r"headers must be a mapping or \(name, value\)"
    ):
        GenericEnvClient("h", headers=headers)


@pytest.mark.parametrize(
    ("name", "value"),
    [("X-A", "\u20ac"), ("X-A", "\x01"), ("X-A", "a\x7f"), ("X A", "b"), ("", "b")],
)
def test_a_header_that_cannot_be_sent_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"^header '{name}' "):
        GenericEnvClient("h", headers={name: value})


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "connection",
        "UPGRADE",
        "Content-Length",
        "transfer-encoding",
        "Sec-WebSocket-Protocol",
    ],
)
def test_a_header_that_the_handshake_writes_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"^header '{name}' is the handshake's own"):
        GenericEnvClient("h", headers={name: "x"})


HUGE = pytest.param(10**400, id="huge")
SECONDS = [
    "connect_timeout_s",
    "message_timeout_s",
    "websocket_ping_interval_s",
    "websocket_ping_timeout_s",
]


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("value", [-1, -1e-9, math.nan, -math.inf, HUGE])
def test_seconds_that_cannot_be_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be seconds >= 0 or None"):
        GenericEnvClient("h", **{name: value})


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("value", ["5", b"5", 1j, [1], object()])
def test_what_is_no_number_of_seconds_is_refused_by_name(name, value):
    with pytest.raises(TypeError, match=rf"^{name} must be seconds >= 0 or None"):
        GenericEnvClient("h", **{name: value})


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize(
    "value", [0, 1, 2.5, 1e300, math.inf, None, np.float32(1), Fraction(1, 2)]
)
def test_usual_seconds_are_taken(name, value):
    GenericEnvClient("h", **{name: value})


@pytest.mark.parametrize("value", [0, -1, 1e-12, math.nan, -math.inf, HUGE])
def test_sizes_that_cannot_be_are_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^max_message_size_mb must be MiB > 0"):
        GenericEnvClient("h", max_message_size_mb=value)


@pytest.mark.parametrize("value", ["5", None])
def test_what_is_no_size_is_refused_by_name(value):
    with pytest.raises(TypeError, match=r"^max_message_size_mb must be MiB > 0"):
        GenericEnvClient("h", max_message_size_mb=value)


@pytest.mark.parametrize("value", [1e300, math.inf])
def test_a_size_beyond_all_memory_is_no_limit(value):
    client = GenericEnvClient("h", max_message_size_mb=value)

    assert sys.maxsize == client._max_message_size


@pytest.mark.parametrize("name", ["_connect_timeout", "_message_timeout"])
def test_timeouts_set_later_are_checked_too(name):
    with pytest.raises(ValueError, match=f"^{name} must be seconds"):
        setattr(GenericEnvClient("h"), name, math.nan)


def test_a_connect_timeout_of_none_is_no_limit():
    assert math.inf == GenericEnvClient("h", connect_timeout_s=None)._connect_timeout


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, ValueError),
        (math.nan, ValueError),
        pytest.param(10**400, ValueError, id="huge"),
        ("5", TypeError),
    ],
)
def test_the_timeout_of_a_call_is_checked_before_anything_is_sent(value, error):
    client = GenericEnvClient("http://127.0.0.1:9")
    with pytest.raises(error, match=r"^timeout_s must be seconds >= 0 or None"):
        client.step({}, timeout_s=value)
    with pytest.raises(error, match=r"^timeout_s must be seconds >= 0 or None"):
        asyncio.run(client.step_async({}, timeout_s=value))


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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@h:1/p?token=secret", "http://h:1/p?…"),
        ("user:secret@h:1?secret", "h:1?…"),
        ("http://user:se@cret@h", "http://h"),
        ("http://h/p@q", "http://h/p@q"),
        ("http://[::1]:2", "http://[::1]:2"),
    ],
)
def test_the_repr_tells_no_secrets(url, shown):
    client = GenericEnvClient(url)

    assert f"GenericEnvClient(base_url='{shown}')" == repr(client)
    assert url == client.base_url


@pytest.mark.parametrize(
    "url",
    [
        "ftp://u:secret@h?secret",
        "u:secret@h:99999?secret",
        "u:secret@",
        "u:secret@?secret",
    ],
)
def test_a_refused_url_tells_none_either(url):
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is what is tested
        parse_address(url)

    assert "secret" not in str(refused.value)


def test_blanks_around_a_proxy_are_dropped():
    assert "http://x:1" == GenericEnvClient("h", proxy=" http://x:1 \n")._settings.proxy


def test_the_repr_names_the_class_and_where_it_goes():
    client = GenericEnvClient("http://h")

    assert "GenericEnvClient(base_url='http://h')" == repr(client)
    assert "GenericEnvClient(base_url='http://h').sync()" == repr(client.sync())
    assert client.sync().async_client is client
