"""Where a server answers what is asked beside its socket."""

from __future__ import annotations

import pytest

from openenv.core._client.dial import parse_address
from openenv.core._client.http import _request
from openenv.core.generic_client import GenericEnvClient


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://h:1", "http://h:1/schema"),
        ("http://h:1/", "http://h:1/schema"),
        ("ws://h:1/ws", "http://h:1/schema"),
        ("wss://h/p/ws/", "https://h/p/schema"),
        ("h:1", "http://h:1/schema"),
        ("  HTTPS://h/p?token=a ", "https://h/p/schema?token=a"),
        ("http://[::1]:8000", "http://[::1]:8000/schema"),
    ],
)
def test_the_schema_lies_beside_the_socket(base_url, expected):
    settings = GenericEnvClient(base_url)._settings
    address = parse_address(settings.ws_url)

    assert expected == _request(settings, address, "/schema").full_url
