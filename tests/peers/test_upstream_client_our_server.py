"""Upstream's real client against our server: it sees what it would see at home."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.golden_servers import GoldenServers
from tests.support.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.peers.conftest import Peer

SCRIPT = Path(__file__).parent / "upstream_client.py"
RUN_TIMEOUT_S = 55.0


@pytest.fixture(scope="module")
def our_servers() -> Iterator[GoldenServers]:
    with GoldenServers(sys.executable) as servers:
        yield servers


@pytest.fixture(scope="module")
def seen(peer: Peer, our_servers: GoldenServers) -> dict[str, Any]:
    """What upstream's client saw, by scenario."""
    port = our_servers.port("many")
    with ChildProcess([peer.python, str(SCRIPT), str(port), peer.version]) as child:
        assert child.wait(RUN_TIMEOUT_S) == 0, child.output()
        return json.loads(child.output().splitlines()[-1])


def test_an_episode_of_upstreams_client(seen: dict[str, Any], peer: Peer):
    expected = {
        "reset": ["reset seed=7 episode_id=None kwargs=[]", None, False],
        "step": ["hi", 0.1, False],
        "metadata": None if peer.is_old else {"k": "v", "n": [1, 2]},
        "state": {"episode_id": "generated", "step_count": 2, "last_message": "meta"},
    }
    assert expected == seen["steps"]


def test_errors_reach_upstreams_client_and_the_session_lives(seen: dict[str, Any]):
    raised, invalid, unencodable, alive = seen["errors"]

    assert raised == "Server error: boom from step (code: EXECUTION_ERROR)"
    assert invalid == "Server error: Invalid message (code: VALIDATION_ERROR)"
    assert unencodable.startswith("Server error: ")
    assert unencodable.endswith("(code: EXECUTION_ERROR)")
    assert alive == "alive"


def test_a_timed_out_step_leaves_upstreams_client_usable(
    seen: dict[str, Any], peer: Peer
):
    expected = ["TimeoutError", "reset seed=7 episode_id=None kwargs=[]"]
    assert expected == seen.get("timeout") or peer.is_old


def test_sixty_four_sessions_each_get_their_own_answers(seen: dict[str, Any]):
    assert [f"session {number}" for number in range(64)] == seen["many"]["echoed"]


def test_one_session_more_is_refused_in_upstreams_words(
    seen: dict[str, Any], peer: Peer
):
    expected = (
        "Server error: Server at capacity: 64/64 sessions active. "
        "Cannot accept new connections. (code: CAPACITY_REACHED)"
    )
    refusal = seen["many"]["refusal"]
    # The old client may meet the close before it reads what came ahead of it.
    assert expected == refusal or (peer.is_old and "1013 (try again later)" in refusal)


def test_the_synchronous_face_of_upstreams_client(seen: dict[str, Any]):
    assert seen["blocking"] == [0.1, 1]


def test_twenty_megabytes_reach_upstreams_client(seen: dict[str, Any]):
    assert seen["large"] == 20 * 1024 * 1024
