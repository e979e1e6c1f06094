"""From an image to episodes, by each way that leads to the Pods."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
from urllib.parse import urlsplit

import pytest
from tests.integration.kubernetes.cluster.images import ECHO
from tests.support.processes import wait_until

from grid_world_env.client import GridWorldEnv
from grid_world_env.models import GridWorldAction


@pytest.fixture
def cluster_dns(cluster, monkeypatch):
    """Lead names of Services and of an ingress to the one Pod, as a cluster would."""
    resolve = socket.getaddrinfo

    def resolve_services(host, *args, **kwargs):
        if str(host).endswith((".rl.svc", ".ingress.test")):
            host = cluster.find("Pod")["status"]["podIP"]
        return resolve(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_services)


def play(env):
    result, steps = env.reset(seed=7), 0
    while not result.done:
        result = env.step(GridWorldAction(direction=result.observation.legal_moves[0]))
        steps += 1
    return steps


@pytest.mark.usefixtures("cluster")
def test_episode_is_played_through_the_port_forward(provider_of):
    with GridWorldEnv(provider=provider_of()).sync() as env:
        assert play(env) > 0


@pytest.mark.usefixtures("cluster_dns")
@pytest.mark.parametrize(
    ("way", "url"),
    [
        ({"access": "service"}, "http://maze.rl.svc:8000"),
        (
            {"ingress_url": "http://{name}.{namespace}.ingress.test:8000"},
            "http://maze.rl.ingress.test:8000",
        ),
    ],
    ids=["service", "ingress"],
)
def test_episode_is_played_by_name(cluster, provider_of, way, url):
    provider = provider_of(name="maze", **way)
    try:
        assert url == provider.start_container()

        provider.wait_for_ready(url)
        with GridWorldEnv(base_url=url).sync() as env:
            assert play(env) > 0
        assert [] == cluster.api.tunnels
    finally:
        provider.stop_container()


def test_connections_go_to_the_replicas_in_turn(cluster, provider_of):
    provider = provider_of(replicas=2)
    try:
        url = provider.start_container()
        provider.wait_for_ready(url)
        cluster.call(cluster.api.forget)
        first, second = (GridWorldEnv(base_url=url).sync() for _ in range(2))
        with first, second:
            assert play(first) == play(second) > 0

        assert 2 == len(set(cluster.api.tunnels))
    finally:
        provider.stop_container()


def test_port_forward_carries_any_bytes_and_the_end(cluster, provider_of):
    body = random.Random(7).randbytes(3_000_001)
    provider = provider_of(ECHO)
    try:
        where = urlsplit(provider.start_container())
        cluster.wait_until_ready()
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
        connection.request("POST", "/", body)
        # HTTP/1.0 without a length: the body ends where the connection does.
        echoed = connection.getresponse().read()

        assert body == echoed
    finally:
        provider.stop_container()


def test_documented_rules_are_what_a_life_needs(cluster, provider_of):
    provider = provider_of(ttl_s=1)
    try:
        provider.wait_for_ready(provider.start_container())
        cluster.wait_until(
            lambda: cluster.store.of_kind("Job")[0]["spec"]["activeDeadlineSeconds"] > 2
        )
    finally:
        provider.stop_container()

    assert cluster.api._rules == cluster.api.used


def test_watch_that_was_cut_off_is_taken_up_again(cluster, provider_of):
    provider = provider_of(ECHO)
    try:
        provider.start_container()
        cluster.wait_until(lambda: 1 == cluster.api.watches.count("Pod"))
        cluster.call(cluster.store.forget_history)
        cluster.wait_until(lambda: 2 == cluster.api.watches.count("Pod"))
        cluster.wait_until_ready()

        assert wait_until(lambda: provider._unready() is None, 10.0)
    finally:
        provider.stop_container()


def test_more_connections_are_led_than_a_pool_has_by_default(cluster, provider_of):
    provider = provider_of(ECHO)
    try:
        where = urlsplit(provider.start_container())
        cluster.wait_until_ready()
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                address = (where.hostname, where.port)
                stack.enter_context(socket.create_connection(address))
            connection = http.client.HTTPConnection(where.hostname, where.port)
            stack.callback(connection.close)
            connection.request("GET", "/health")

            assert 200 == connection.getresponse().status
    finally:
        provider.stop_container()
