"""One script of a user and one environment with tools, on either side of the wire."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.peers.conftest import Peer

FOLDER = Path(__file__).parent
RUN_TIMEOUT_S = 100.0
HELLO = {"message": "Hello", "length": 5}


@pytest.fixture(scope="module", params=["our client", "upstream's client"])
def client(request: pytest.FixtureRequest, peer: Peer) -> str:
    return sys.executable if request.param == "our client" else peer.python


@pytest.fixture(scope="module", params=["our server", "upstream's server"])
def port(request: pytest.FixtureRequest, peer: Peer) -> Iterator[int]:
    python = sys.executable if request.param == "our server" else peer.python
    with ChildProcess([python, str(FOLDER / "serve_echo.py")]) as server:
        yield server.wait_for_port()


def seen_by(python: str, port: int, *options: str) -> dict[str, Any]:
    """What the script saw."""
    command = [python, str(FOLDER / "echo_session.py"), str(port), *options]
    with ChildProcess(command) as child:
        assert child.wait(RUN_TIMEOUT_S) == 0, child.output()
        seen: dict[str, Any] = json.loads(child.output().splitlines()[-1])
    return seen


@pytest.mark.timeout(150)
def test_the_script_sees_the_same_whoever_serves_and_whoever_asks(
    client: str, port: int, peer: Peer
):
    if peer.is_old:
        seen = seen_by(client, port, "tools")
        assert seen == {
            "tools": ["echo_message", "echo_with_length"],
            "step": ["echo_message", "Hello", None, 0.5, False],
            "called": HELLO,
            "refused": True,
            "large": 20 * 1024 * 1024,
            "blocking": "Hello",
        }
        return
    seen = seen_by(client, port)
    awaited, tools = seen["awaited"], seen["awaited"]["tools"]
    assert awaited["reset"] == ["Echo environment ready!", 0.0, False]
    assert awaited["steps"] == [
        ["echo_message", "Hello", None, 0.5, False],
        ["echo_with_length", {"message": "", "length": 0}, None, 0.0, False],
        ["nope", None, "tool_not_found", 0.0, False],
    ]
    assert [tool["name"] for tool in tools] == ["echo_message", "echo_with_length"]
    assert tools == awaited["listed"]
    assert tools[0]["input_schema"]["required"] == ["message"]
    assert awaited["called"] == HELLO
    assert awaited["refusal"] == "Tool 'nope' failed: Unknown tool: 'nope'"
    assert awaited["state"] == ["peer", 4]
    assert seen["blocking"] == [
        ["Echo environment ready!"] * 2,
        ["echo_message", "Hello", None, 0.5, False],
        "Hello",
        ["echo_message", "echo_with_length"],
        ["echo_message", "Hi", None, 0.2, False],
    ]
    assert seen["large"] == [20 * 1024 * 1024]
