"""One server for all hostile clients; what is measured, /proc tells: Linux only."""

from __future__ import annotations

import sys

import pytest
from tests.integration.client.scripted import free_port
from tests.integration.hostile.victim import Victim, start_server

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed

collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


@pytest.fixture(scope="package")
def victim():
    """Return the server that outlives all that is done to it."""
    with start_server() as process:
        yield Victim(process)
        assert process.returncode is None, process.output()


@pytest.fixture
def io_thread():
    """Start the thread of all blocking clients, which outlives them."""
    with pytest.raises(ConnectFailed):
        GenericEnvClient(f"127.0.0.1:{free_port()}").sync().connect()
