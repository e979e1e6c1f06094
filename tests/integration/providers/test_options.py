"""What a container may be asked for, on the real engine."""

from __future__ import annotations

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.images.build import derived_image, small_image
from tests.integration.providers import servers
from tests.support.processes import wait_until

from openenv.core.containers.runtime import (
    DockerSwarmProvider,
    LocalDockerProvider,
    local_docker_provider,
)
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ProviderError


@contextlib.contextmanager
def started(image, command=servers.HANGS, **options):
    provider = LocalDockerProvider(stop_timeout_s=0, command=command)
    url = provider.start_container(image, **options)
    try:
        yield provider, url
    finally:
        provider.close()


@pytest.fixture
def derived(engine):
    """Make images that differ by a few instructions; removed afterwards."""
    tags = []

    def build(make, *instructions):
        tag = f"openenv-test-derived:{len(tags)}"
        tags.append(make(engine, tag, *instructions))
        return tag

    yield build
    for tag in tags:
        engine.images.remove(tag, force=True)


def test_limits_variables_labels_and_init(engine, image):
    with started(
        image,
        env_vars={"COLOUR": "blue"},
        memory="128m",
        cpus=0.5,
        labels={"team": "red"},
    ) as (provider, _):
        told = engine.api.inspect_container(provider._container_name)
    host = told["HostConfig"]

    assert (128 << 20, 500_000_000) == (host["Memory"], host["NanoCpus"])
    assert host["Init"] is True
    assert "COLOUR=blue" in told["Config"]["Env"]
    assert "red" == told["Config"]["Labels"]["team"]
    (bound,) = told["NetworkSettings"]["Ports"]["8000/tcp"]
    assert "127.0.0.1" == bound["HostIp"]


def test_gpus_are_asked_of_the_engine(image):
    # This engine has none, and says so; nothing is left of the container.
    with (
        pytest.raises(ProviderError, match=r"could not select device driver.*gpu"),
        started(image, gpus="all"),
    ):
        pass


def test_volumes(engine, image, tmp_path):
    (tmp_path / "told").write_text("from the host")
    command = servers.python(
        "import time; print(open('/data/told').read()); time.sleep(600)"
    )
    with started(image, command, volumes=[f"{tmp_path}:/data:ro"]) as (provider, _):
        container = engine.containers.get(provider._container_name)
        output = wait_until(container.logs, 20)

    assert b"from the host\n" == output


def test_an_anonymous_volume_goes_with_its_container(engine, derived):
    # Whether it does is seen by the fixture `nothing_left`.
    with started(derived(small_image, "VOLUME /data"), None) as (provider, _):
        told = engine.api.inspect_container(provider._container_name)

    assert ["volume"] == [mount["Type"] for mount in told["Mounts"]]


def test_networks(engine, image):
    network = engine.networks.create("openenv-test-network")
    try:
        with started(image, network=network.name) as (provider, _):
            told = engine.api.inspect_container(provider._container_name)
    finally:
        network.remove()

    assert [network.name] == list(told["NetworkSettings"]["Networks"])


def test_the_hosts_network(image):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = GenericEnvClient.from_docker_image(
        image, network="host", container_port=port, command=servers.serving(port)
    ).sync()
    try:
        assert f"http://127.0.0.1:{port}" == env.base_url
        assert not env.reset(seed=1).done
    finally:
        env.close()


def test_a_port_that_is_taken_is_an_error(image):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ProviderError, match="address already in use"),
            started(image, port=port),
        ):
            pass


def test_a_port_of_the_callers_choice(image):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with started(image, port=port) as (_, url):
        assert f"http://127.0.0.1:{port}" == url
    with socket.create_server(("127.0.0.1", port)):
        pass  # it is free again


def test_an_image_of_port_7860(derived):
    # Built on an image that exposes 8000, so the label has to say it.
    tag = derived(derived_image, "EXPOSE 7860", "LABEL openenv.port=7860")
    env = GenericEnvClient.from_docker_image(tag, command=servers.serving(7860))
    with env as client:
        assert not client.reset(seed=1).done


def test_the_port_of_the_manifest_where_the_image_tells_two(engine, derived):
    tag = derived(small_image, "EXPOSE 9998 9999")
    with started(tag, None) as (provider, _):
        told = engine.api.inspect_container(provider._container_name)

    assert ["7861/tcp"] == [
        port for port, bound in told["NetworkSettings"]["Ports"].items() if bound
    ]


def test_a_program_that_is_not_there_leaves_nothing(image):
    with (
        pytest.raises(ProviderError, match=r"cannot start a container.*no such file"),
        started(image, ["/no/such/program"], init=False),
    ):
        pass


def test_a_second_start_is_refused(image):
    with started(image) as (provider, _):
        with pytest.raises(ProviderError, match="runs already; stop it first"):
            provider.start_container(image)
        name = provider._container_name
        assert name


def test_a_start_during_another_is_refused(image, monkeypatch):
    refusals = []

    def start_again(_client):
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as thread:
            again = thread.submit(provider.start_container, image)
            refusals.append(again.exception(10))

    monkeypatch.setattr(local_docker_provider, "remove_strays_of", start_again)
    provider = LocalDockerProvider(command=servers.HANGS, stop_timeout_s=0)
    provider.start_container(image)
    with provider:
        (refusal,) = refusals
        assert isinstance(refusal, ProviderError)
        assert "another thread starts it" in str(refusal)


def test_stopping_twice_and_after_somebody_else(engine, image):
    provider = LocalDockerProvider(image, command=servers.HANGS, stop_timeout_s=0)
    provider.stop_container()
    provider.start_container()
    engine.containers.get(provider._container_name).remove(force=True)
    provider.stop_container()
    provider.stop_container()

    assert provider._container_name is None


def test_a_container_that_somebody_else_removed_is_told(engine, image, monkeypatch):
    with started(image) as (provider, url):
        engine.containers.get(provider._container_name).remove(force=True)
        with pytest.raises(ProviderError, match=r"container .* is lost: No such cont"):
            provider.wait_for_ready(url)
        # As if it went between the last look and the log.
        monkeypatch.setattr(provider, "_refuse_ended", lambda: None)
        with pytest.raises(TimeoutError, match=r"ready within 0s.*it is gone, and its"):
            provider.wait_for_ready(url, 0)


def test_an_interruption_while_idle_is_over(image):
    provider = LocalDockerProvider(image, command=servers.LIGHT, stop_timeout_s=0)
    provider.interrupt()
    with provider:
        provider.wait_for_ready(provider.start_container())


def test_no_swarm_and_none_wanted():
    with pytest.raises(ProviderError, match="Docker Swarm is not active"):
        DockerSwarmProvider(auto_init_swarm=False)


def test_proxies_are_bypassed(image, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with started(image, servers.LIGHT) as (provider, url):
        provider.wait_for_ready(url)
