"""Where a server answers what is asked beside its socket."""

from __future__ import annotations

import pytest

from openenv.core._client.dial import parse_address
from openenv.core._client.http import _place, _request
from openenv.core.generic_client import GenericEnvClient


@pytest.mark.parametrize(
    ("base_url", "url", "target"),
    [
        ("http://h:1", "http://h:1/schema", "/schema"),
        ("http://h:1/", "http://h:1/schema", "/schema"),
        ("ws://h:1/ws", "http://h:1/schema", "/schema"),
        ("wss://h/p/ws/", "https://h/p/schema", "/p/schema"),
        ("h:1", "http://h:1/schema", "/schema"),
        ("  HTTPS://h/p?token=a ", "https://h/p/schema", "/p/schema?token=a"),
        ("http://[::1]:8000", "http://[::1]:8000/schema", "/schema"),
    ],
)
def test_the_schema_lies_beside_the_socket(base_url, url, target):
    settings = GenericEnvClient(base_url)._settings
    address = parse_address(settings.ws_url)

    assert (url, target) == _place(address, "/schema")


def test_the_users_headers_come_once_and_before_the_urls_credentials():
    headers = {"authorization": "Bearer x", "X-A": "b"}
    settings = GenericEnvClient("http://me:pw@h:1", headers=headers)._settings
    address = parse_address(settings.ws_url)
    lines = _request(settings, address, "/schema").decode().split("\r\n")

    assert [
        "GET /schema HTTP/1.1",
        "Connection: close",
        "Host: h:1",
        "authorization: Bearer x",
        "X-A: b",
        "",
        "",
    ] == lines
