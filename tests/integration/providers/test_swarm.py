"""Services of a real swarm of one engine.

The balancer (``ingress``) needs IPVS, which not every kernel has; there the service is
made and removed all the same, and sessions are played in mode ``host``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration.providers import servers

from openenv.core.containers.runtime import (
    DockerSwarmProvider,
    docker_swarm_provider,
    find_strays,
    remove_strays,
)
from openenv.core.containers.runtime._owner import STARTED_LABEL
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ProviderError

pytestmark = pytest.mark.usefixtures("swarm")


@pytest.fixture
def provider():
    with DockerSwarmProvider(publish_mode="host") as made:
        yield made


def services(swarm, name):
    return swarm.services.list(filters={"name": name})


def test_an_episode(image, provider):
    with GenericEnvClient.from_docker_image(image, provider) as env:
        assert not env.reset(seed=1).done


def test_what_a_service_is_asked_to_be(image, swarm):
    provider = DockerSwarmProvider()
    provider.start_container(
        image,
        env_vars={"COLOUR": "blue"},
        replicas=3,
        cpu_limit=0.5,
        memory_limit="64m",
        constraints=["node.role==manager"],
        labels={"team": "red"},
        command=servers.HANGS,
    )
    try:
        (service,) = services(swarm, provider._service_name)
        spec = service.attrs["Spec"]
        template = spec["TaskTemplate"]
        assert 3 == spec["Mode"]["Replicated"]["Replicas"]
        limits = template["Resources"]["Limits"]
        assert (500_000_000, 64 << 20) == (limits["NanoCPUs"], limits["MemoryBytes"])
        assert ["node.role==manager"] == template["Placement"]["Constraints"]
        assert "red" == spec["Labels"]["team"]
        assert ["COLOUR=blue"] == template["ContainerSpec"]["Env"]
        (port,) = service.attrs["Endpoint"]["Ports"]
        assert (8000, provider._published_port) == (
            port["TargetPort"],
            port["PublishedPort"],
        )
    finally:
        name = provider._service_name
        provider.close()

    assert [] == services(swarm, name)


def test_a_replica_that_exits_ends_the_wait(image, provider):
    with pytest.raises(ProviderError, match=r"(?s)non-zero exit \(7\).*line 59"):
        GenericEnvClient.from_docker_image(
            image, provider, command=servers.EXITS
        ).sync()

    assert provider._service_name is None


def test_a_service_that_is_never_ready(image, provider):
    handle = GenericEnvClient.from_docker_image(
        image, provider, command=servers.LISTENS_ELSEWHERE, wait_timeout=1
    )
    with pytest.raises(TimeoutError, match=r"Swarm service at .* did not become ready"):
        handle.sync()


def test_an_unknown_option_is_refused(image, provider):
    with pytest.raises(ValueError, match=r"Unsupported kwargs .*'colour'"):
        provider.start_container(image, colour="blue")


def test_a_second_start_is_refused(image, provider):
    provider.start_container(image, command=servers.LISTENS_ELSEWHERE)
    with pytest.raises(ProviderError, match="runs already; stop it first"):
        provider.start_container(image)


def test_a_start_during_another_is_refused(image, provider, monkeypatch):
    refusals = []

    def start_again(_client):
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as thread:
            again = thread.submit(provider.start_container, image)
            refusals.append(again.exception(10))

    monkeypatch.setattr(docker_swarm_provider, "remove_strays_of", start_again)
    provider.start_container(image, command=servers.LISTENS_ELSEWHERE)
    (refusal,) = refusals
    assert isinstance(refusal, ProviderError)
    assert "another thread starts it" in str(refusal)


def test_an_overlay_network_is_made(swarm):
    try:
        DockerSwarmProvider(overlay_network="openenv-test-overlay").close()
        DockerSwarmProvider(overlay_network="openenv-test-overlay").close()
        (network,) = swarm.networks.list(names=["openenv-test-overlay"])
        assert "overlay" == network.attrs["Driver"]
        assert network.attrs["Attachable"]
    finally:
        swarm.networks.get("openenv-test-overlay").remove()


def test_a_stray_service_is_found_and_removed(image, provider, swarm, monkeypatch):
    # As if an earlier process of this id had made it.
    own = "openenv.core.containers.runtime.docker_swarm_provider.own_labels"
    labels = provider._arguments(image, None, None, {"container_port": 8000})["labels"]
    monkeypatch.setattr(own, lambda: {**labels, STARTED_LABEL: "long ago"})
    provider.start_container(image, command=servers.LISTENS_ELSEWHERE)
    name = provider._service_name

    assert [("service", name)] == [(each.kind, each.name) for each in find_strays()]
    remove_strays()
    assert [] == services(swarm, name)
