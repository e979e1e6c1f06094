"""Nothing outlives its owner: stopped, cancelled, ended or killed."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading

import pytest
from tests.conftest import ROOT
from tests.integration.kubernetes.cluster.images import ECHO, SILENT, STUBBORN
from tests.support.processes import ChildProcess

from grid_world_env.client import GridWorldEnv
from openenv.errors import ProviderError


def test_stop_waits_until_all_is_gone_and_may_be_repeated(cluster, provider_of):
    provider = provider_of(SILENT, replicas=2)
    provider.start_container()
    cluster.wait_until(lambda: 2 == len(cluster.kubelet.processes))

    provider.stop_container()

    assert [] == cluster.names()
    provider.stop_container()


def test_server_that_ignores_sigterm_is_killed_after_its_grace(cluster, provider_of):
    provider = provider_of(STUBBORN, stop_grace_s=1)
    provider.start_container()
    cluster.wait_until_ready()

    provider.stop_container()

    assert [] == cluster.living_processes()


def test_stop_that_failed_can_be_repeated(cluster, provider_of):
    provider = provider_of(SILENT)
    provider.start_container()
    cluster.call(lambda: cluster.api.denied.add(("batch", "jobs", "delete")))

    with pytest.raises(ProviderError, match=r"cannot delete Job .*forbidden"):
        provider.stop_container()
    assert [] != cluster.names()

    cluster.call(cluster.api.denied.clear)
    provider.stop_container()


async def test_cancelled_connect_leaves_nothing(cluster, provider_of):
    env = GridWorldEnv(provider=provider_of(SILENT))
    connecting = asyncio.ensure_future(env.connect())
    await asyncio.to_thread(cluster.wait_until, lambda: cluster.store.of_kind("Pod"))
    connecting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await connecting

    assert [] == cluster.names()


@pytest.mark.usefixtures("cluster")
def test_interrupt_ends_a_wait_in_another_thread(provider_of):
    provider = provider_of(SILENT)
    url = provider.start_container()
    timer = threading.Timer(0.1, provider.interrupt)
    timer.start()

    with pytest.raises(ProviderError, match="interrupted"):
        provider.wait_for_ready(url)
    timer.join()


@pytest.mark.parametrize(("end", "ttl_s"), [("exits", 300), ("is killed", 1)])
def test_nothing_outlives_a_process_that(cluster, kubeconfig, end, ttl_s):
    module = "tests.integration.kubernetes.owner"
    command = [sys.executable, "-m", module, str(kubeconfig), str(ttl_s), end]
    with ChildProcess(command, cwd=ROOT) as owner:
        cluster.wait_until(lambda: cluster.store.of_kind("Service"), 30.0)
        if end == "is killed":
            owner.send_signal(signal.SIGKILL)
        else:
            assert 0 == owner.wait(20.0), owner.output()
        cluster.wait_until_empty()


def test_lease_is_renewed_while_the_owner_lives(cluster, provider_of):
    provider = provider_of(ECHO, ttl_s=1)
    try:
        provider.start_container()
        cluster.wait_until_ready()
        pod = cluster.find("Pod")["metadata"]["uid"]
        cluster.wait_until(
            lambda: cluster.store.of_kind("Job")[0]["spec"]["activeDeadlineSeconds"] > 3
        )

        assert pod == cluster.find("Pod")["metadata"]["uid"]
    finally:
        provider.stop_container()


def test_job_that_somebody_deleted_is_told(cluster, provider_of):
    provider = provider_of(SILENT, ttl_s=1)
    url = provider.start_container()
    cluster.call(lambda: cluster.store.remove(cluster.store.of_kind("Job")[0]))

    with pytest.raises(ProviderError, match=r"cannot follow Job .*not found"):
        provider.wait_for_ready(url)

    cluster.wait_until_empty()
