"""Upstream's own client at work against a server; run with upstream's interpreter.

`python upstream_client.py PORT VERSION` prints one JSON object: what each scenario saw.
It is one run for all scenarios because importing upstream takes seven seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openenv.core.generic_client import GenericEnvClient

SESSIONS = 64
RESET_TEXT = "reset seed=7 episode_id=None kwargs=[]"


async def steps(url: str) -> dict[str, Any]:
    """The ordinary way of an episode."""
    async with GenericEnvClient(base_url=url) as client:
        reset = await client.reset(seed=7)
        step = await client.step({"message": "hi"})
        tagged = await client.step({"message": "meta"})
        state = await client.state()
    return {
        "reset": [reset.observation["echoed"], reset.reward, reset.done],
        "step": [step.observation["echoed"], step.reward, step.done],
        "metadata": getattr(tagged, "metadata", None),  # newer than 0.3
        "state": state,
    }


async def errors(url: str) -> list[str]:
    """The text of each error, and a step that still works afterwards."""
    seen = []
    async with GenericEnvClient(base_url=url) as client:
        await client.reset()
        for action in ({"message": "raise"}, {"message": 5}, {"message": "object"}):
            try:
                await client.step(action)
            except RuntimeError as error:
                seen.append(str(error))
        alive = await client.step({"message": "alive"})
        seen.append(alive.observation["echoed"])
    return seen


async def timeout(url: str) -> list[str]:
    """A step half a second over its deadline, then a reset within its own."""
    async with GenericEnvClient(base_url=url, message_timeout_s=1.0) as client:
        await client.reset()
        try:
            await client.step({"message": "sleep:1.5"})
        except TimeoutError as error:
            first = type(error).__name__
        reset = await client.reset(seed=7)
        return [first, reset.observation["echoed"]]


async def many(url: str) -> dict[str, Any]:
    """All sessions at once, one more than there are slots."""
    clients = [GenericEnvClient(base_url=url) for _ in range(SESSIONS)]
    await asyncio.gather(*(client.connect() for client in clients))
    await asyncio.gather(*(client.reset() for client in clients))
    actions = [{"message": f"session {number}"} for number in range(SESSIONS)]
    results = await asyncio.gather(*map(step_one, clients, actions))
    try:
        await GenericEnvClient(base_url=url).reset()
        refusal = "none"
    except Exception as error:  # noqa: BLE001 - 0.3 lets those of `websockets` through
        refusal = str(error)
    await asyncio.gather(*(client.close() for client in clients))
    return {"echoed": results, "refusal": refusal}


async def step_one(client: GenericEnvClient, action: dict[str, Any]) -> str:
    """The text that one session's step brings back."""
    return (await client.step(action)).observation["echoed"]


def blocking(url: str) -> list[Any]:
    """The synchronous face."""
    with GenericEnvClient(base_url=url).sync() as client:
        client.reset(seed=7)
        return [client.step({"message": "hi"}).reward, client.state()["step_count"]]


def large(url: str) -> int:
    """Twenty megabytes in the answer."""
    with GenericEnvClient(base_url=url).sync() as client:
        client.reset()
        return len(client.step({"message": "big:20971520"}).observation["echoed"])


def main() -> None:
    """Run every scenario and print what it saw."""
    url = f"http://127.0.0.1:{sys.argv[1]}"
    seen: dict[str, Any] = {
        function.__name__: asyncio.run(function(url))
        for function in (steps, errors, many)
    }
    if sys.argv[2] != "0.3.0":  # whose client takes the late answer for the next one's
        seen["timeout"] = asyncio.run(timeout(url))
    seen |= {function.__name__: function(url) for function in (blocking, large)}
    print(json.dumps(seen))  # noqa: T201 - the result


if __name__ == "__main__":
    main()
