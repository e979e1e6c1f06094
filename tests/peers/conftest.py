"""The upstream implementation as a peer, in a virtual environment of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.golden_servers import GoldenServers

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Peer:
    """One upstream: its version and the interpreter that has it."""

    version: str
    python: str

    @property
    def is_old(self) -> bool:
        """Whether it is of the time before metadata travelled (0.4)."""
        return self.version == "0.3.0"

    def __str__(self) -> str:
        return self.version


@pytest.fixture(scope="session")
def upstream_python() -> str:
    """The interpreter that has upstream's package installed, made by `make peers`."""
    default = Path("~/.cache/openenv-upstream/bin/python").expanduser()
    python = os.environ.get("OPENENV_UPSTREAM_PYTHON", str(default))  # noqa: TID251
    if not Path(python).exists():
        pytest.skip(f"no upstream peer at {python}: run `make peers`")
    return python


@pytest.fixture(scope="session", params=["0.10.0", "0.3.0"])
def peer(request: pytest.FixtureRequest) -> Peer:
    """Both upstreams, the newest and the oldest that is spoken with."""
    if request.param == "0.10.0":
        return Peer(request.param, request.getfixturevalue("upstream_python"))
    default = Path(f"~/.cache/openenv-upstream-{request.param}/bin/python")
    python = os.environ.get("OPENENV_OLD_UPSTREAM_PYTHON", str(default.expanduser()))  # noqa: TID251
    if not Path(python).exists():
        pytest.skip(f"no upstream {request.param} at {python}: run `make peers`")
    return Peer(request.param, python)


@pytest.fixture(scope="session")
def peer_servers(peer: Peer) -> Iterator[GoldenServers]:
    """That upstream's real server for each golden application."""
    with GoldenServers(peer.python) as servers:
        yield servers


@pytest.fixture(scope="session")
def upstream_servers(upstream_python: str) -> Iterator[GoldenServers]:
    """Upstream's real server for each golden application."""
    with GoldenServers(upstream_python) as servers:
        yield servers
