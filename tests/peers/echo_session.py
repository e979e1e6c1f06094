"""A user's script against an echo server; run with the interpreter of either side.

`python echo_session.py PORT` prints one JSON object: what each part saw. It uses only
what `echo_env` offers, and runs unchanged with upstream's package and with ours.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "envs"))

from echo_env import CallToolAction, EchoEnv, ListToolsAction

LARGE = 20 * 1024 * 1024


def say(message: str, tool_name: str = "echo_message") -> CallToolAction:
    """The action that echoes."""
    return CallToolAction(tool_name=tool_name, arguments={"message": message})


def told(result: Any) -> list[Any]:
    """What a step that called a tool brought back."""
    observation = result.observation
    error = observation.error and observation.error.error_type.value
    data = observation.result and observation.result["data"]
    return [observation.tool_name, data, error, result.reward, result.done]


async def awaited(url: str) -> dict[str, Any]:
    """The asynchronous face."""
    async with EchoEnv(base_url=url) as env:
        reset = await env.reset(episode_id="peer")
        steps = [
            await env.step(action)
            for action in (say("Hello"), say("", "echo_with_length"), say("x", "nope"))
        ]
        listed = await env.step(ListToolsAction())
        tools = await env.list_tools()
        called = await env.call_tool("echo_with_length", message="Hello")
        try:
            await env.call_tool("nope")
            refusal = "none"
        except RuntimeError as error:
            refusal = str(error)
        state = await env.state()
    return {
        "reset": [reset.observation.echoed_message, reset.reward, reset.done],
        "steps": [told(step) for step in steps],
        "listed": [tool.model_dump() for tool in listed.observation.tools],
        "tools": [tool.model_dump() for tool in tools],
        "called": called,
        "refusal": refusal,
        "state": [state.episode_id, state.step_count],
    }


def blocking(url: str) -> list[Any]:
    """The blocking face, and the plain `with`."""
    with EchoEnv(base_url=url).sync() as env:
        reset = env.reset()
        step = env.step(say("Hello"))
        called = env.call_tool("echo_message", message="Hello")
        names = [tool.name for tool in env.list_tools()]
    with EchoEnv(base_url=url) as env:
        plain = env.reset()
        again = env.step(say("Hi"))
    greetings = [each.observation.echoed_message for each in (reset, plain)]
    return [greetings, told(step), called, names, told(again)]


async def large(url: str) -> list[int]:
    """Twenty megabytes each way."""
    async with EchoEnv(base_url=url) as env:
        await env.reset()
        step = await env.step(say("x" * LARGE, "echo_with_length"))
        return [len(step.observation.result["data"]["message"])]


async def tools_alone(url: str) -> dict[str, Any]:
    """What clients of 0.3 can do, too: their observations keep no fields of others."""
    async with EchoEnv(base_url=url) as env:
        await env.reset(episode_id="peer")
        tools = await env.list_tools()
        step = told(await env.step(say("Hello")))
        called = await env.call_tool("echo_with_length", message="Hello")
        try:
            await env.call_tool("nope")
            refused = False
        except RuntimeError as error:
            refused = "nope" in str(error)
        large = await env.call_tool("echo_with_length", message="x" * LARGE)
    with EchoEnv(base_url=url).sync() as face:
        face.reset()
        blocking = face.call_tool("echo_message", message="Hello")
    return {
        "tools": [tool.name for tool in tools],
        "step": step,
        "called": called,
        "refused": refused,
        "large": len(large["message"]),
        "blocking": blocking,
    }


def main() -> None:
    """Run every part and print what it saw."""
    url = f"http://127.0.0.1:{sys.argv[1]}"
    if sys.argv[2:] == ["tools"]:
        print(json.dumps(asyncio.run(tools_alone(url))))  # noqa: T201 - the result
        return
    seen = {
        "awaited": asyncio.run(awaited(url)),
        "blocking": blocking(url),
        "large": asyncio.run(large(url)),
    }
    print(json.dumps(seen))  # noqa: T201 - the result


if __name__ == "__main__":
    main()
