"""`AutoEnv` with installed packages and real servers (public report 37)."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.auto.container import Folder

from openenv import AutoAction, AutoEnv
from openenv.auto import auto_env
from openenv.core.generic_client import GenericAction, GenericEnvClient

# Nothing listens there, and a proxy of the environment is not asked.
NOWHERE = "http://nowhere.invalid"


@pytest.fixture
def space(monkeypatch):
    """Say where the Space of these tests is."""
    return lambda url: monkeypatch.setattr(auto_env, "space_url", lambda _repo: url)


@pytest.mark.usefixtures("installed")
def test_a_script_resets_what_from_env_has_started():
    provider = Folder()
    env = AutoEnv.from_env("grid-world", container_provider=provider, wait_timeout=41)
    move = AutoAction.from_env("grid_world")
    try:
        assert env.base_url.startswith("http://127.0.0.1:")
        start = env.reset(seed=7)
        result = env.step(move(direction=start.observation.legal_moves[0]))
    finally:
        env.close()

    assert 1 == start.observation.steps_left - result.observation.steps_left
    assert "GridWorldEnv" == type(env).__name__
    assert [
        ("start", "grid-world-env:latest", None, {}),
        ("wait", 41),
        ("stop",),
    ] == provider.log


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_loop_awaits_what_from_env_has_started(in_thread):
    provider = Folder()

    def make():
        return AutoEnv.from_env("grid_world", container_provider=provider)

    async with await asyncio.to_thread(make) if in_thread else make() as env:
        result = await env.reset(seed=7)
        assert result.observation.legal_moves
        assert 0 == (await env.state()).step_count

    assert ("stop",) == provider.log[-1]


@pytest.mark.usefixtures("installed")
def test_two_loops_after_another_use_one_client():
    env = AutoEnv.from_env("grid_world", container_provider=Folder())

    async def episode():
        return (await env.reset(seed=7)).observation.legal_moves

    try:
        assert asyncio.run(episode()) == asyncio.run(episode())
    finally:
        env.close()


@pytest.mark.usefixtures("installed")
def test_a_class_with_a_coroutine_of_its_own_is_started_too(monkeypatch):
    cls = AutoEnv.get_env_class("grid_world")

    async def from_docker_image(cls, image, provider=None, **kwargs):
        return await super(cls, cls).from_docker_image(image, provider, **kwargs)

    monkeypatch.setattr(
        cls, "from_docker_image", classmethod(from_docker_image), raising=False
    )

    async def episode():
        env = AutoEnv.from_env("grid_world", container_provider=Folder())
        async with env:
            return await env.reset(seed=7)

    assert asyncio.run(episode()).observation.legal_moves


@pytest.mark.usefixtures("installed")
def test_what_was_not_ready_in_time_is_stopped():
    provider = Folder(failing=TimeoutError("not yet"))
    with pytest.raises(
        ValueError, match=r"Failed to create.*'grid_world'.*not yet"
    ) as caught:
        AutoEnv.from_env(
            "grid_world",
            docker_image="own:1",
            container_provider=provider,
            env_vars={"A": "b"},
            memory="1g",
        )

    assert isinstance(caught.value.__cause__, TimeoutError)
    assert ("start", "own:1", {"A": "b"}, {"memory": "1g"}) == provider.log[0]
    assert ["start", "wait", "stop"] == [each[0] for each in provider.log]


@pytest.mark.usefixtures("installed")
def test_a_server_that_answers_is_used_and_nothing_started(server):
    provider = Folder()
    env = AutoEnv.from_hub(
        "Grid-World-Env", server, container_provider=provider, message_timeout_s=9.0
    )
    with env.sync() as face:
        assert face.reset(seed=7).observation.legal_moves

    assert [] == provider.log
    assert 9.0 == env._message_timeout


@pytest.mark.usefixtures("installed")
def test_where_nobody_answers_here_a_container_is_started():
    provider = Folder()
    env = AutoEnv.from_env(
        "grid_world", "http://localhost:9", container_provider=provider
    )
    with env.sync() as face:
        face.reset()

    assert ["start", "wait", "stop"] == [each[0] for each in provider.log]


@pytest.mark.usefixtures("installed")
def test_where_nobody_answers_elsewhere_nothing_is_started():
    provider = Folder()
    with pytest.raises(ValueError, match=r"Failed to create.*not available") as caught:
        AutoEnv.from_env("grid_world", NOWHERE, None, provider, proxy=None)

    assert isinstance(caught.value.__cause__, ConnectionError)
    assert [] == provider.log


def test_without_the_package_values_are_dicts(server):
    env = AutoEnv.from_env("anything", base_url=server, skip_install=True)
    with env.sync() as face:
        moves = face.reset(seed=7).observation["legal_moves"]
        face.step(GenericAction(direction=moves[0]))

    assert GenericEnvClient is type(env)
    assert GenericAction is AutoAction.from_hub("anything", skip_install=True)


def test_without_the_package_an_image_is_started_by_its_name():
    provider = Folder()
    env = AutoEnv.from_env(
        "anything",
        docker_image="own:1",
        container_provider=provider,
        skip_install=True,
        wait_timeout=42,
    )
    with env.sync() as face:
        assert face.reset().observation["legal_moves"]

    assert [("start", "own:1", None, {}), ("wait", 42)] == provider.log[:2]


def test_without_the_package_something_must_say_where_the_server_is():
    with pytest.raises(ValueError, match=r"Cannot use skip_install=True .*'echo'"):
        AutoEnv.from_env("echo", skip_install=True)
    with pytest.raises(ConnectionError, match=f"Server not available at {NOWHERE}"):
        AutoEnv.from_env("echo", NOWHERE, skip_install=True, proxy=None)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("skip_install", [False, True])
def test_a_space_that_runs_is_used(server, space, skip_install):
    space(server)
    env = AutoEnv.from_env("openenv/Grid_World-Env", skip_install=skip_install)
    with env.sync() as face:
        face.reset()

    assert server == env.base_url
    assert skip_install == (type(env) is GenericEnvClient)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("skip_install", [False, True])
def test_the_image_of_a_space_that_sleeps_is_started(space, skip_install):
    space("http://127.0.0.1:9")
    provider = Folder()
    env = AutoEnv.from_env(
        "https://huggingface.co/spaces/openenv/grid_world_env",
        container_provider=provider,
        skip_install=skip_install,
        wait_timeout=43,
    )
    with env.sync() as face:
        face.reset()

    image = "registry.hf.space/openenv-grid-world-env:latest"
    assert [("start", image, None, {}), ("wait", 43)] == provider.log[:2]
