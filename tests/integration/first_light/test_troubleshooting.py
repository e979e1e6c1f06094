"""Every error has a section in docs/troubleshooting.md, and says what stands there."""

from __future__ import annotations

import inspect
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.first_light.documents import Document, run, serve
from tests.support.processes import ROOT

from openenv import GenericEnvClient, errors
from openenv.core._native import native
from openenv.core.containers.runtime import ProcessProvider
from openenv.core.env_server import (
    Action,
    ConcurrencyConfig,
    Environment,
    Observation,
    Server,
    State,
    create_app,
)

if TYPE_CHECKING:
    from openenv import SyncEnvClient

DOCUMENT = Document("docs/troubleshooting.md")
SECTIONS: dict[str, str] = dict(
    re.findall(
        r"^### ([^\n]+)\n(.*?)(?=^##|\Z)",
        (ROOT / DOCUMENT.name).read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
PUBLIC = {name: getattr(errors, name) for name in errors.__all__ if name[0].isupper()}


def test_every_public_error_has_a_section_and_every_section_an_error():
    assert set(PUBLIC) == set(SECTIONS)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_section_names_the_fields_the_code_and_the_builtin_parent(name):
    cls, text = PUBLIC[name], SECTIONS[name]
    own = vars(cls)
    fields = {key for key, value in own.items() if isinstance(value, property)}
    if "__init__" in own:
        fields |= set(inspect.signature(cls.__init__).parameters) - {"self", "message"}
    builtin = [c.__name__ for c in cls.__bases__ if c.__module__ == "builtins"]

    for field in fields:
        assert f"`{field}`" in text
    if "wire_code" in own and name != "ServerError":
        assert f"Code `{cls.wire_code}`" in text
    for parent in set(builtin) - {"Exception"}:
        assert f"Also a `{parent}`" in text


# --- what they say ------------------------------------------------------------------


class Move(Action):
    cells: int = 0
    nap_s: float = 0.0


class Chess(Environment[Move, Observation, State]):
    def reset(self, **_: Any) -> Observation:
        return Observation()

    def step(self, action: Move, **_: Any) -> Observation:
        time.sleep(action.nap_s)
        if action.cells:
            raise LookupError("no such cell")
        return Observation()

    @property
    def state(self) -> State:
        return State()


class ManyGames(Chess):
    SUPPORTS_CONCURRENT_SESSIONS = True


class NoDisplay(Chess):
    def __init__(self):
        raise OSError("no display")


@dataclass(frozen=True)
class At:
    """Where something goes wrong: a connected client, and servers by name."""

    env: SyncEnvClient
    urls: dict[str, str]

    def other(self, name: str) -> SyncEnvClient:
        return GenericEnvClient(base_url=self.urls[name]).sync()


@pytest.fixture(scope="module")
def urls():
    limits = ConcurrencyConfig(max_concurrent_envs=1, session_timeout=0.3)
    apps = {
        "usual": create_app(ManyGames, Move, Observation, max_concurrent_envs=10),
        "single": create_app(Chess, Move, Observation),
        "impatient": create_app(Chess, Move, Observation, concurrency_config=limits),
        "broken": create_app(NoDisplay, Move, Observation),
    }
    servers = {name: Server(app, port=0) for name, app in apps.items()}
    threads = [threading.Thread(target=s.run) for s in servers.values()]
    for thread in threads:
        thread.start()
    yield {name: f"http://127.0.0.1:{s.port}" for name, s in servers.items()}
    for server in servers.values():
        server.stop()
    for thread in threads:
        thread.join(10)


@pytest.fixture
def at(urls):
    with GenericEnvClient(base_url=urls["usual"]).sync() as env:
        env.reset()
        yield At(env, urls)


def _idle_too_long(at: At):
    with at.other("impatient") as idle:
        idle.reset()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            threading.Event().wait(1.0)  # longer than the server's patience
            idle.state()


def _too_many(at: At):
    with at.other("single") as first:
        first.reset()
        at.other("single").reset()


def _answered(code: str):
    # As the server words them: tests/conformance/golden. This client never causes them.
    error = errors.server_error({"message": MESSAGES[code], "code": code})
    return _raising(error)


def _raising(error: Exception):
    def cause(_: At):
        raise error

    return cause


MESSAGES = {
    "INVALID_JSON": "Invalid JSON: Expecting value: line 1 column 1 (char 0)",
    "UNKNOWN_TYPE": "Unknown message type: foo",
}
CAUSES = {
    "CapacityReached": _too_many,
    "ConcurrencyConfigurationError": lambda _: create_app(
        Chess, Move, Observation, max_concurrent_envs=4
    ),
    "ConnectFailed": lambda _: (
        GenericEnvClient(base_url="http://localhost:1").sync().connect()
    ),
    "ConnectionClosed": _raising(errors.ConnectionClosed(1001)),
    "EncodeError": lambda at: at.env.step({"moves": [1, {"piece": object()}]}),
    "ExecutionFailed": lambda at: at.env.step({"cells": 1}),
    "FactoryFailed": lambda at: at.other("broken").reset(),
    "InvalidJson": _answered("INVALID_JSON"),
    "LimitExceeded": lambda at: at.env.step({"cells": "a" * (101 << 20)}),
    "LocalProtocolError": lambda _: native.ClientEndpoint(
        "h",
        "/ws",
        [("Upgrade", "x")],
        max_message_bytes=1,
        ping_interval_s=None,
        ping_timeout_s=None,
    ),
    "ProviderError": lambda _: (
        GenericEnvClient(provider=ProcessProvider("/nowhere")).sync().connect()
    ),
    "RequestTimeout": lambda at: at.env.step({"nap_s": 0.2}, timeout_s=0.05),
    "SessionLost": _idle_too_long,
    "UnknownMessageType": _answered("UNKNOWN_TYPE"),
    "ValidationFailed": lambda at: at.env.step({"cells": "two"}),
}


def test_what_an_error_says_is_tried_for_every_text_of_the_document():
    assert set(CAUSES) == {name for name, text in SECTIONS.items() if "```text" in text}


@pytest.mark.parametrize("name", sorted(CAUSES))
def test_an_error_says_what_the_document_shows(name, at):
    [text] = re.findall(r"```text\n(.*?)\n```", SECTIONS[name], re.DOTALL)
    shown = ".*".join(map(re.escape, text.split("…")))

    with pytest.raises(PUBLIC[name]) as raised:
        CAUSES[name](at)

    assert re.fullmatch(shown, str(raised.value), re.DOTALL)


def test_the_program_about_trying_again_runs():
    with serve("grid_world_env.server.app:app", ROOT / "envs") as server:
        url = f"http://127.0.0.1:{server.wait_for_port()}"

        assert ["False\n"] == [run(p, ROOT / "envs", url) for p in DOCUMENT.programs]
