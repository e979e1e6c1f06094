"""Factories and handles with providers that only take notes."""

from __future__ import annotations

import asyncio
import math

import pytest
from tests.integration.client.in_thread import scripted_in_thread

from openenv.core.containers.runtime import ContainerProvider, RuntimeProvider
from openenv.core.generic_client import GenericEnvClient


class Container(ContainerProvider):
    def __init__(self, url=None, failing=()):
        self.url, self.failing, self.log = url, failing, []

    def _do(self, *what):
        self.log.append(what)
        if what[0] in self.failing:
            raise OSError(what[0])

    def start_container(self, image, port=None, env_vars=None, **kwargs):
        self._do("start", image, port, env_vars, kwargs)
        return self.url

    def wait_for_ready(self, base_url, timeout_s=30.0):
        self._do("wait", base_url, timeout_s)

    def stop_container(self):
        self._do("stop")


class Runtime(Container, RuntimeProvider):
    def start(self, port=None, env_vars=None, **kwargs):
        self._do("start", port, env_vars, kwargs)
        return self.url

    def wait_for_ready(self, timeout_s=30.0):
        self._do("wait", timeout_s)

    def stop(self):
        self._do("stop")


class RuntimeOnly(Runtime):
    start_container = stop_container = property()  # type: ignore[assignment]

    def __getattribute__(self, name):
        if name in {"start_container", "stop_container"}:
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_nothing_starts_before_the_handle_is_used():
    provider = Container()
    handle = GenericEnvClient.from_docker_image("echo", provider)

    assert [] == provider.log
    assert "not started" in repr(handle)


def test_options_go_to_whom_they_belong():
    with scripted_in_thread() as server:
        provider = Container(server.url)
        env = GenericEnvClient.from_docker_image(
            "echo:1",
            provider,
            wait_timeout=7,
            port=9,
            env_vars={"A": "b"},
            memory="1g",
            message_timeout_s=3.0,
            headers={"X-A": "b"},
        ).sync()
        assert 3.0 == env.async_client._message_timeout
        assert env.async_client._provider is provider
        env.close()

    start = ("start", "echo:1", 9, {"A": "b"}, {"memory": "1g"})
    assert [start, ("wait", server.url, 7), ("stop",)] == provider.log


def test_a_started_client_belongs_to_the_loop_that_uses_it():
    async def episode(env):
        async with env:
            await env.reset()

    with scripted_in_thread() as server:
        provider = Container(server.url)
        env = GenericEnvClient.from_docker_image("echo", provider).started()
        assert server.url == env.base_url
        assert not env._home.is_connected()
        asyncio.run(episode(env))

    assert ["start", "wait", "stop"] == [each[0] for each in provider.log]


@pytest.mark.parametrize("failing", ["start", "wait"])
def test_what_could_not_be_started_without_a_loop_is_stopped(failing):
    provider = Container("http://127.0.0.1:9", {failing})
    with pytest.raises(OSError, match=failing):
        GenericEnvClient.from_docker_image("echo", provider).started()

    assert ("stop",) == provider.log[-1]
    assert 1 == provider.log.count(("stop",))


@pytest.mark.parametrize("failing", ["start", "wait"])
async def test_a_failed_start_is_stopped(failing):
    provider = Container("http://127.0.0.1:9", {failing})
    with pytest.raises(OSError, match=failing):
        await GenericEnvClient.from_docker_image("echo", provider)

    assert ("stop",) == provider.log[-1]
    assert 1 == provider.log.count(("stop",))


async def test_a_failed_connection_is_stopped():
    provider = Container("http://127.0.0.1:9")
    with pytest.raises(ConnectionError):
        async with GenericEnvClient.from_docker_image("echo", provider):
            pass

    assert ["start", "wait", "stop"] == [each[0] for each in provider.log]


@pytest.mark.parametrize(
    "start", [GenericEnvClient.from_docker_image, GenericEnvClient.from_env]
)
def test_to_wait_none_is_to_wait_as_long_as_the_provider_does(start):
    provider = Container("http://127.0.0.1:9", {"wait"})
    with pytest.raises(OSError, match="wait"):
        start("org/echo", provider=provider, wait_timeout=None).sync()

    assert ("wait", provider.url, 30.0) == provider.log[1]


@pytest.mark.parametrize("wait_timeout", ["5", math.nan, -1])
@pytest.mark.parametrize(
    "start", [GenericEnvClient.from_docker_image, GenericEnvClient.from_env]
)
def test_a_wait_that_cannot_be_is_refused_before_anything_starts(start, wait_timeout):
    with pytest.raises((TypeError, ValueError), match="wait_timeout must be seconds"):
        start("org/echo", wait_timeout=wait_timeout)


def test_a_handle_is_used_once():
    with scripted_in_thread() as server:
        handle = GenericEnvClient.from_docker_image("echo", Container(server.url))
        with handle:
            pass
        with pytest.raises(RuntimeError, match="already been resolved"):
            handle.sync()
        with pytest.raises(RuntimeError, match="already been resolved"):
            asyncio.run(handle)


@pytest.mark.parametrize(
    ("repo_id", "options", "image"),
    [
        ("openenv/echo_env", {}, "registry.hf.space/openenv-echo-env:latest"),
        ("Org/My.Env", {"tag": "v2"}, "registry.hf.space/org-my-env:v2"),
    ],
)
def test_the_image_of_a_space(repo_id, options, image):
    provider = Container("http://127.0.0.1:9", {"wait"})
    with pytest.raises(OSError, match="wait"):
        GenericEnvClient.from_env(repo_id, provider=provider, **options).sync()

    assert ("start", image, None, None, {}) == provider.log[0]


def test_a_space_without_docker():
    with scripted_in_thread() as server:
        provider = RuntimeOnly(server.url)
        handle = GenericEnvClient.from_env(
            "openenv/echo_env", use_docker=False, provider=provider, port=9, workers=2
        )
        with handle:
            pass

    assert ("start", 9, None, {"workers": 2}) == provider.log[0]
    assert ("stop",) == provider.log[-1]


def test_options_for_a_ready_made_runtime_are_refused():
    provider = RuntimeOnly("http://127.0.0.1:9")
    handle = GenericEnvClient.from_env(
        "openenv/echo_env", use_docker=False, provider=provider, reload=True
    )
    with pytest.raises(ValueError, match="provider_kwargs cannot be used"):
        handle.sync()

    assert [] == provider.log


def test_a_subclass_with_a_constructor_of_its_own():
    class Mine(GenericEnvClient):
        def __init__(self, base_url, flavour="plain", **kwargs):
            super().__init__(base_url, **kwargs)
            self.flavour = flavour

    with (
        scripted_in_thread() as server,
        Mine.from_docker_image("echo", Container(server.url), flavour="new") as env,
    ):
        assert "new" == env.flavour
