"""From an image to a connected client, on the real engine."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import sys
import threading
import time
from urllib.parse import urlsplit

import pytest
from tests.integration.providers import servers
from tests.support.processes import wait_until

from grid_world_env import GridWorldAction, GridWorldEnv
from openenv.core.containers.runtime import LocalDockerProvider
from openenv.core.containers.runtime._docker_engine import listening_ports
from openenv.core.generic_client import GenericEnvClient
from openenv.core.sync_client import SyncEnvClient
from openenv.errors import ConnectionClosed, ProviderError, SessionLost


def play(env, seed):
    result = env.reset(seed=seed)
    while not result.done:
        result = env.step(GridWorldAction(direction=result.observation.legal_moves[0]))
    return result


def containers(engine, image):
    return engine.containers.list(
        all=True, ignore_removed=True, filters={"ancestor": image}
    )


def test_a_hundred_episodes(image):
    with GridWorldEnv.from_docker_image(image) as env:
        results = [play(env, seed) for seed in range(100)]

    assert all(result.done for result in results)


async def test_every_form_of_a_handle(image):
    async with GenericEnvClient.from_docker_image(image) as env:
        assert not (await env.reset(seed=1)).done

    env = await GenericEnvClient.from_docker_image(image)
    try:
        assert not (await env.reset(seed=1)).done
    finally:
        await env.close()


def test_blocking_forms_of_a_handle(image):
    face = GenericEnvClient.from_docker_image(image).sync()
    try:
        assert isinstance(face, SyncEnvClient)
        assert not face.reset(seed=1).done
    finally:
        face.close()

    env = asyncio.run(GenericEnvClient.from_docker_image(image))
    try:
        assert not env.sync().reset(seed=1).done
    finally:
        env.sync().close()


def test_a_server_with_a_single_session_has_it_free(image):
    handle = GenericEnvClient.from_docker_image(
        image,
        env_vars={"OPENENV_MAX_CONCURRENT_ENVS": "1"},
        message_timeout_s=5.0,
    )
    with handle as env:
        assert env._message_timeout == 5.0
        assert not env.reset(seed=1).done


async def test_connected_soon_after_the_first_health_answer(image):
    provider = LocalDockerProvider()
    healthy_at: list[float] = []
    watcher = threading.Thread(target=_watch_health, args=(provider, healthy_at))
    watcher.start()
    try:
        async with GenericEnvClient.from_docker_image(image, provider):
            connected_at = time.monotonic()
    finally:
        watcher.join()

    took_s = connected_at - healthy_at[0]
    sys.stdout.write(f"connected {took_s:.2f} s after the first health answer\n")
    assert took_s <= 1.5


def _watch_health(provider, healthy_at):
    wait_until(lambda: provider._container_id, 10)
    name = provider._container_name

    def answers():
        try:
            ports = provider._client.api.inspect_container(name)["NetworkSettings"]
            (bound,) = ports["Ports"]["8000/tcp"]
            connection = http.client.HTTPConnection(
                "127.0.0.1", int(bound["HostPort"]), timeout=1
            )
            with contextlib.closing(connection):
                connection.request("GET", "/health")
                return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException, KeyError, ValueError, TypeError):
            return False

    wait_until(answers, 30)
    healthy_at.append(time.monotonic())


async def test_the_loop_runs_on_while_a_container_starts(image):
    longest = 0.0

    async def tick():
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)

    ticking = asyncio.create_task(tick())
    async with GenericEnvClient.from_docker_image(image):
        ticking.cancel()

    assert longest < 0.25


async def test_a_cancelled_start_ends_soon_and_leaves_nothing(engine, image):
    connecting = asyncio.create_task(
        GenericEnvClient.from_docker_image(
            image, LocalDockerProvider(stop_timeout_s=1), command=servers.HANGS
        )
    )
    await asyncio.to_thread(wait_until, lambda: containers(engine, image), 20)
    cancelled_at = time.monotonic()
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting

    assert time.monotonic() - cancelled_at < 3
    assert [] == containers(engine, image)


async def test_a_start_cancelled_before_the_engine_has_answered(engine, image):
    for turns in range(4):
        connecting = asyncio.create_task(GenericEnvClient.from_docker_image(image))
        for _ in range(turns):
            await asyncio.sleep(0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    assert [] == containers(engine, image)


def test_a_container_that_exits_ends_the_wait_with_its_last_lines(engine, image):
    started_at = time.monotonic()
    with pytest.raises(ProviderError) as raised:
        GenericEnvClient.from_docker_image(image, command=servers.EXITS).sync()

    assert time.monotonic() - started_at < 5
    message = str(raised.value)
    assert "exited with code 7" in message
    assert message.endswith("line 59")
    assert "line 10\n" in message
    assert "line 9\n" not in message
    assert [] == containers(engine, image)


class Listening(LocalDockerProvider):
    """Begin to wait when the container does what is to be told of it."""

    def wait_for_ready(self, base_url, timeout_s):
        wait_until(lambda: listening_ports(self._client, self._container_name), 20)
        super().wait_for_ready(base_url, timeout_s)


@pytest.mark.parametrize(
    ("command", "provider", "complaint"),
    [
        (servers.HANGS, LocalDockerProvider, "/health did not answer"),
        (servers.NEVER_ANSWERS, Listening, "/health did not answer: timed out"),
        (servers.HEALTH_WITHOUT_WEBSOCKET, Listening, "/ws did not open.*404"),
        (servers.LISTENS_ELSEWHERE, Listening, "it listens on 9001"),
    ],
    ids=["hangs", "accepts only", "no /ws", "elsewhere"],
)
def test_a_server_that_is_never_ready(engine, image, command, provider, complaint):
    handle = GenericEnvClient.from_docker_image(
        image, provider(stop_timeout_s=0), command=command, wait_timeout=0.5
    )
    with pytest.raises(TimeoutError, match=rf"did not become ready.*{complaint}"):
        handle.sync()

    assert [] == containers(engine, image)


def test_a_container_killed_in_mid_episode(engine, image):
    with GenericEnvClient.from_docker_image(image) as env:
        env.reset(seed=1)
        (container,) = containers(engine, image)
        container.kill()
        with pytest.raises((ConnectionClosed, SessionLost)):
            env.step({"move": "up"})

    assert [] == containers(engine, image)


def test_a_container_that_ignores_sigterm_is_killed(engine, image):
    provider = LocalDockerProvider(stop_timeout_s=1, init=False)
    env = GenericEnvClient.from_docker_image(
        image, provider, command=servers.IGNORES_SIGTERM
    ).sync()
    stopped_at = time.monotonic()
    env.close()

    assert 1 <= time.monotonic() - stopped_at < 5
    assert [] == containers(engine, image)


def test_a_client_that_cannot_be_made_starts_nothing(engine, image):
    with pytest.raises(ValueError, match="Invalid mode"):
        GenericEnvClient.from_docker_image(image, mode="nonsense").sync()

    assert [] == containers(engine, image)


def test_a_provider_of_the_clients_own_starts_again_after_close(image):
    env = GenericEnvClient(provider=LocalDockerProvider(image)).sync()
    env.connect()
    first_url = env.base_url
    env.close()
    assert env.base_url is None
    try:
        assert not env.reset(seed=1).done
        assert urlsplit(env.base_url).port
        assert first_url is not None
    finally:
        env.close()


@pytest.mark.timeout(280)  # the engine starts a container after the other
async def test_fifty_at_once_have_ports_of_their_own(image):
    async def start(number):
        env = await GenericEnvClient.from_docker_image(
            image, wait_timeout=200, command=servers.LIGHT
        )
        assert not (await env.reset(seed=number)).done
        return env

    started = await asyncio.gather(
        *(start(number) for number in range(50)), return_exceptions=True
    )
    failures = [each for each in started if isinstance(each, BaseException)]
    clients = [each for each in started if not isinstance(each, BaseException)]
    urls = {env.base_url for env in clients}
    await asyncio.gather(*(env.close() for env in clients))

    assert [] == failures
    assert 50 == len(urls)
