"""The upstream implementation as a peer, in a virtual environment of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.golden_servers import GoldenServers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def upstream_python() -> str:
    """The interpreter that has upstream's package installed, made by `make peers`."""
    default = Path("~/.cache/openenv-upstream/bin/python").expanduser()
    python = os.environ.get("OPENENV_UPSTREAM_PYTHON", str(default))  # noqa: TID251
    if not Path(python).exists():
        pytest.skip(f"no upstream peer at {python}: run `make peers`")
    return python


@pytest.fixture(scope="session")
def upstream_servers(upstream_python: str) -> Iterator[GoldenServers]:
    """Upstream's real server for each golden application."""
    with GoldenServers(upstream_python) as servers:
        yield servers
