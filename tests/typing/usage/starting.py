"""Clients that start what they connect to: handles, and providers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, assert_type

from openenv import AutoAction, AutoEnv
from openenv.core import GenericEnvClient, SyncEnvClient
from openenv.core.containers.runtime import (
    ContainerProvider,
    DockerSwarmProvider,
    KubernetesProvider,
    LocalDockerProvider,
    ProcessProvider,
    RuntimeProvider,
    Stray,
    UVProvider,
    find_strays,
)
from openenv.core.env_client import EnvClient
from openenv.core.env_server import Action, Observation, State


class Env(EnvClient[Action, Observation, State]):
    pass


async def awaited_handles() -> None:
    assert_type(await Env.from_docker_image("image"), Env)
    async with Env.from_docker_image("image", wait_timeout=5, port=8000) as env:
        # reveals: StepResult[Observation]
        reveal_type(await env.reset())
    assert_type(await Env.from_env("org/name", use_docker=False), Env)
    task = asyncio.create_task(Env.from_env("org/name"))
    assert_type(await task, Env)


def blocking_handles() -> None:
    with Env.from_docker_image("image") as env:
        assert_type(env, Env)
    face = Env.from_docker_image("image", LocalDockerProvider()).sync()
    assert_type(face, SyncEnvClient[Action, Observation, State])
    assert_type(asyncio.run(Env.from_docker_image("image")), Env)


async def mistaken_handles() -> None:
    Env.from_docker_image(7)  # expect: arg-type, reportArgumentType
    # expect: attr-defined, reportAttributeAccessIssue
    Env.from_docker_image("image").reset()
    # expect: arg-type, reportArgumentType
    Env.from_docker_image("image", UVProvider(project_path="."))
    # expect: arg-type, reportArgumentType
    LocalDockerProvider(pull="often")
    UVProvider(".")  # expect: call-arg, reportCallIssue


def ready_made() -> None:
    containers: list[ContainerProvider] = [
        LocalDockerProvider("image", pull="never"),
        KubernetesProvider("image", replicas=2),
        DockerSwarmProvider(publish_mode="host"),
    ]
    runtimes: list[RuntimeProvider] = [
        ProcessProvider("envs/grid_world_env"),
        UVProvider(project_path="."),
    ]
    for container in containers:
        assert_type(container.start_container("image", port=8000), str)
        container.stop_container()
    for runtime in runtimes:
        with runtime as started:
            assert_type(started, RuntimeProvider)
    with GenericEnvClient(provider=runtimes[0]).sync() as env:
        env.reset()
    assert_type(find_strays(), list[Stray])


def by_name() -> None:
    env = AutoEnv.from_env("echo", container_provider=LocalDockerProvider("image"))
    assert_type(env, EnvClient[Any, Any, Any])
    assert_type(AutoEnv.get_env_class("echo"), type[EnvClient[Any, Any, Any]])
    assert_type(AutoAction.from_env("echo"), type[Any])
    assert_type(
        GenericEnvClient.from_docker_image("image").started().base_url, str | None
    )
    AutoEnv.from_env(7)  # expect: arg-type, reportArgumentType
    # expect: arg-type, reportArgumentType
    AutoEnv.from_env("echo", container_provider=UVProvider(project_path="."))


class OwnProvider(ContainerProvider):
    def start_container(
        self,
        image: str,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> str:
        return f"http://{image}:{port}"

    def stop_container(self) -> None:
        pass

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        pass


class HalfProvider(ContainerProvider):
    def stop_container(self) -> None:
        pass


OwnProvider().start_container("image")
HalfProvider()  # expect: abstract, reportAbstractUsage
