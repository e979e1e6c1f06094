from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.integration.kubernetes.cluster.fake import FakeCluster
from tests.integration.kubernetes.cluster.images import GRID_WORLD

from openenv.core.containers.runtime.kubernetes_provider import KubernetesProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(running_cluster: FakeCluster) -> Iterator[FakeCluster]:
    """An empty cluster, that must be empty again."""
    running_cluster.call(running_cluster.api.forget)
    yield running_cluster
    left = running_cluster.names(), running_cluster.living_processes()
    running_cluster.clear()  # one test that fails is enough
    assert ([], []) == left


@pytest.fixture
def kubeconfig(cluster: FakeCluster, tmp_path: Path) -> Path:
    return cluster.write_kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def provider_of(kubeconfig: Path) -> Callable[..., KubernetesProvider]:
    def make(image: str = GRID_WORLD, **options) -> KubernetesProvider:
        return KubernetesProvider(image, kubeconfig=kubeconfig, **options)

    return make
