from __future__ import annotations

import base64

import pytest

from openenv.core._client.dial import Address, parse_address, with_ws_path
from openenv.core._client.proxy import is_loopback
from openenv.core.utils import convert_to_ws_url


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("http://h:1", "ws://h:1/ws"),
        ("https://h", "wss://h/ws"),
        ("ws://h:2///", "ws://h:2/ws"),
        ("wss://h/prefix", "wss://h/prefix/ws"),
        ("h:3", "ws://h:3/ws"),
        ("localhost:8000", "ws://localhost:8000/ws"),
        ("h", "ws://h/ws"),
        ("h/a/b/", "ws://h/a/b/ws"),
        ("http://h/p?x=1", "ws://h/p/ws?x=1"),
        ("http://h?session_id=7", "ws://h/ws?session_id=7"),
        ("http://h/ws", "ws://h/ws"),
        ("http://h/ws/", "ws://h/ws"),
        ("ws://h/p/ws?x=1", "ws://h/p/ws?x=1"),
        ("http://h/news", "ws://h/news/ws"),
        ("HTTP://H:1/Path", "ws://h:1/Path/ws"),
        ("HtTpS://Host", "wss://host/ws"),
        ("  http://h:1/ \n", "ws://h:1/ws"),
        ("http://[::1]:8000", "ws://[::1]:8000/ws"),
        ("[::1]", "ws://[::1]/ws"),
        ("https://h:443", "wss://h/ws"),
        ("http://h:80", "ws://h/ws"),
        ("https://h:80", "wss://h:80/ws"),
        ("http://h/#part", "ws://h/ws"),
        ("http://h/a b?q=c d", "ws://h/a%20b/ws?q=c%20d"),
        ("http://h/a%20b", "ws://h/a%20b/ws"),
        ("http://h/ä", "ws://h/%C3%A4/ws"),
        ("http://bücher.example", "ws://xn--bcher-kva.example/ws"),
        ("http://user:secret@h", "ws://h/ws"),
    ],
)
def test_each_base_url_becomes_one_right_address(given, right):
    assert right == parse_address(given).url


@pytest.mark.parametrize("given", ["http://h/p?x=1", "h:3/ws/", "HTTPS://h//"])
def test_an_address_is_the_same_when_its_own_url_is_parsed(given):
    address = parse_address(given)

    assert address == parse_address(address.url)
    assert address == parse_address(with_ws_path(given))


def test_an_address_names_host_and_port_apart_from_the_authority():
    expected = Address(
        secure=False, host="::1", port=81, authority="[::1]:81", target="/ws"
    )

    assert expected == parse_address("http://[::1]:81")
    assert 443 == parse_address("https://h").port
    assert 80 == parse_address("h").port


def test_credentials_go_to_the_header_and_not_into_texts():
    address = parse_address("https://us%40er:p%3Aw@h:1")

    expected = "Basic " + base64.b64encode(b"us@er:p:w").decode()
    assert expected == address.authorization
    assert "wss://h:1/ws" == address.url


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("", "no host"),
        ("  ", "no host"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("ftp://h", "unknown scheme"),
        ("http://h:99999", "impossible port"),
        ("http://h:port", "impossible port"),
    ],
)
def test_what_is_no_address_is_refused_by_name(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        parse_address(given)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("http://h/", "ws://h"),
        ("https://h/p", "wss://h/p"),
        ("ws://h", "ws://h"),
        ("WSS://h///", "wss://h"),
        ("h:1", "ws://h:1"),
    ],
)
def test_convert_to_ws_url_maps_the_scheme(given, right):
    assert right == convert_to_ws_url(given)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.0.0.2", "::1", "[::1]"]
)
def test_loopback_hosts_are_known(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["localhost.evil.com", "my-localhost-proxy.example.com", "128.0.0.1", "::2", "h"],
)
def test_other_hosts_are_not_loopback(host):
    assert not is_loopback(host)
