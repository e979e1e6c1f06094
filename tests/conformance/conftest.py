"""This project's own servers of the golden applications."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.golden_servers import GoldenServers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def golden_servers() -> Iterator[GoldenServers]:
    """Our server for each golden application."""
    with GoldenServers(sys.executable) as servers:
        yield servers
