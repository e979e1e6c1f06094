"""The echo environment: rewards, counts, what it ships, and its README as written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from tests.integration.first_light.documents import Document, run, serve
from tests.support.processes import ROOT

from echo_env import CallToolAction, EchoEnv, EchoObservation, ListToolsAction, models
from echo_env.server.environment import EchoEnvironment
from openenv.core.env_server import Action

FOLDER = Path(models.__file__).parent
README = Document("envs/echo_env/README.md")


def say(message, tool_name="echo_message"):
    return CallToolAction(tool_name=tool_name, arguments={"message": message})


@pytest.fixture(scope="module")
def url():
    with serve("echo_env.server.app:app", ROOT / "envs") as server:
        yield f"http://127.0.0.1:{server.wait_for_port()}"


async def test_an_episode_as_the_issue_writes_it(url):
    async with EchoEnv(base_url=url) as env:
        greeting = (await env.reset()).observation.echoed_message
        result = await env.step(say("Hello"))

    assert "Echo environment ready!" == greeting
    assert "Hello" == result.observation.result["data"]
    assert 0.5 == result.reward


def test_the_same_through_sync_and_with(url):
    with EchoEnv(base_url=url).sync() as env:
        greeting = env.reset().observation.echoed_message
        result = env.step(say("Hello"))
    with EchoEnv(base_url=url) as env:
        plain = env.step(say("Hi"))

    assert ("Echo environment ready!", 0.5) == (greeting, result.reward)
    assert "Hi" == plain.observation.result["data"]


@pytest.mark.parametrize("number", [0, 1])
def test_the_readmes_examples_say_what_they_promise(number, url):
    printed = run(README.programs[number], ROOT / "envs", url)

    assert printed.startswith("Echo environment ready!\nHello")


async def test_steps_count_and_calls_by_name_do_not(url):
    async with EchoEnv(base_url=url) as env:
        await env.reset(episode_id="mine")
        await env.step(ListToolsAction())
        await env.step(say("x", "nope"))
        await env.call_tool("echo_message", message="x")
        state = await env.state()

    assert ("mine", 2) == (state.episode_id, state.step_count)


def test_the_reward_is_for_what_was_echoed():
    environment = EchoEnvironment()
    reset = environment.reset()
    length = environment.step(say("four", "echo_with_length"))
    failed = environment.step(CallToolAction(tool_name="echo_message"))
    listed = environment.step(ListToolsAction())

    assert isinstance(reset, EchoObservation)
    assert 0.0 == reset.reward
    assert ({"message": "four", "length": 4}, 0.4) == (
        length.result.data,
        length.reward,
    )
    assert ("invalid_args", 0.0) == (failed.error.error_type, failed.reward)
    assert (None, 2) == (listed.reward, len(listed.tools))


def test_another_action_is_refused_by_name():
    with pytest.raises(ValueError, match="Action is no action of this environment"):
        EchoEnvironment().step(Action())


def test_manifest_package_and_container_name_the_environment():
    manifest = yaml.safe_load((FOLDER / "openenv.yaml").read_text())
    package = tomllib.loads((FOLDER / "pyproject.toml").read_text())
    container = (FOLDER / "server" / "Dockerfile").read_text()

    assert ("echo_env", "server.app:app") == (manifest["name"], manifest["app"])
    assert ["openenv[core,mcp]>=0.11"] == package["project"]["dependencies"]
    assert ["echo_env", "echo_env.server"] == package["tool"]["setuptools"]["packages"]
    assert re.search(r'"openenv\[core,mcp\] @ file://', container)
