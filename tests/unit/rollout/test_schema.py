"""Where a server tells its schema."""

from __future__ import annotations

import pytest

from openenv.rollout._schema import schema_url


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
def test_schema_lies_beside_the_socket(base_url, expected):
    assert schema_url(base_url) == expected
