"""An environment with tools of every kind, and how to ask for them without a client."""

# ruff: noqa: ARG002 - the signatures are those of Environment

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import ClassVar

import httpx
from fastmcp import Context, FastMCP
from tests.integration.server.hosting import serving

from openenv.core.env_server import (
    CallToolAction,
    CallToolObservation,
    MCPEnvironment,
    Observation,
    State,
)


class Tools(MCPEnvironment):
    """Counts in itself, in the MCP session, and waits for gates that a test opens."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    instances: ClassVar[list[Tools]] = []
    gate: ClassVar[threading.Event] = threading.Event()
    entered: ClassVar[threading.Event] = threading.Event()

    def __init__(self):
        super().__init__(self.make_server())
        self.calls = 0
        self.closed = threading.Event()
        self._state = State()
        self.instances.append(self)

    def make_server(self):
        server = FastMCP("tools")
        for function in (self.count, self.remember, self.wait, self.wait_async):
            server.tool(function)
        server.tool(self.fail)
        return server

    async def count(self) -> int:
        """Count the calls of this environment."""
        self.calls += 1
        return self.calls

    async def remember(self, context: Context) -> int:
        """Count the calls of this MCP session."""
        number = (await context.get_state("number") or 0) + 1
        await context.set_state("number", number)
        return number

    def wait(self) -> str:
        """Block until the gate is opened."""
        self.entered.set()
        assert self.gate.wait(20)
        return "waited"

    async def wait_async(self) -> str:
        """Wait until the gate is opened."""
        self.entered.set()
        assert await asyncio.to_thread(self.gate.wait, 20)
        return "waited"

    async def fail(self, text: str) -> str:
        """Raise."""
        raise ValueError(text)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(episode_id=episode_id)
        return Observation(reward=0.0, metadata={"status": "ready"})

    def _step_impl(self, action, timeout_s=None, **kwargs):
        raise ValueError("it knows tools only")

    @property
    def state(self):
        return self._state

    def close(self):
        super().close()
        self.closed.set()

    @classmethod
    def variant(cls, **members):
        """Make a class with its own instances and gates."""
        own = {"instances": [], "gate": threading.Event(), "entered": threading.Event()}
        return type(cls.__name__, (cls,), own | members)


def serving_tools(environment, **options):
    """Serve an environment with tools until the end of the block."""
    return serving(environment, CallToolAction, CallToolObservation, **options)


@asynccontextmanager
async def http(server):
    """Open an HTTP client of a server and give `rpc`, which asks `/mcp`."""

    async def rpc(method, **params):
        request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        response = await client.post("/mcp", json=request)
        assert response.status_code == 200
        answer = response.json()
        assert 7 == answer["id"]
        return answer

    async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
        yield rpc
