"""Hold many sessions and step them in rounds: `python hold_sessions.py PORT N ROUNDS`.

Prints `READY` when all sessions are reset, `ROUND <seconds>` after each round, `DONE`
after the last, and then holds the sessions until it is killed.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time

import uvloop

from openenv.core.generic_client import GenericEnvClient


async def main(port: int, sessions: int, rounds: int) -> None:
    """Open, reset, step in rounds, hold."""
    url = f"http://127.0.0.1:{port}"
    clients = [
        GenericEnvClient(base_url=url, connect_timeout_s=30.0) for _ in range(sessions)
    ]
    await asyncio.gather(*(client.connect() for client in clients))
    await asyncio.gather(*(client.reset() for client in clients))
    say("READY")
    for _ in range(rounds):
        started = time.monotonic()
        await asyncio.gather(
            *(step(client, number) for number, client in enumerate(clients))
        )
        say(f"ROUND {time.monotonic() - started:.3f}")
    say("DONE")
    await asyncio.Event().wait()


async def step(client: GenericEnvClient, number: int) -> None:
    """One step, whose answer must be this session's."""
    result = await client.step({"number": number})
    assert result.observation["number"] == number


def say(line: str) -> None:
    """Tell the test, at once."""
    print(line, flush=True)  # noqa: T201 - the protocol with the test


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.Runner(loop_factory=uvloop.new_event_loop).run(
        main(*map(int, sys.argv[1:]))
    )
