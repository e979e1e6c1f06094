"""What goes wrong is told at once, in the cluster's words, and leaves nothing."""

from __future__ import annotations

import pytest
from tests.integration.kubernetes.cluster.images import (
    ENDS,
    EXITS,
    GREEDY,
    GRID_WORLD,
    MISSING,
    SILENT,
)

from openenv.core.containers.runtime import _kubernetes_options
from openenv.errors import ProviderError

FAILURES = {
    "ImagePullBackOff": (
        MISSING,
        {},
        ["Back-off pulling image", "event Failed: Failed to pull image"],
    ),
    "Unschedulable": (
        GRID_WORLD,
        {"resources": {"requests": {"memory": "1Ti"}}},
        ["1 Insufficient memory", "event FailedScheduling: 0/1 nodes are available"],
    ),
    "OOMKilled": (
        GREEDY,
        {"resources": {"limits": {"memory": "64Mi"}}},
        ["container exited with code 137"],
    ),
    "CrashLoopBackOff": (
        EXITS,
        {},
        [
            "container exited with code 1",
            "event BackOff: Back-off restarting failed container",
            "its last output:\ncannot find the maze",
        ],
    ),
    "FailedCreate": (
        GRID_WORLD,
        {"security": "image"},
        ["event FailedCreate: Error creating: pods", "violates PodSecurity"],
    ),
    "Completed": (ENDS, {}, ["ended by itself"]),
}


@pytest.mark.parametrize("reason", FAILURES)
def test_failure_is_named_by_its_event(cluster, provider_of, reason):
    image, options, texts = FAILURES[reason]
    provider = provider_of(image, **options)
    url = provider.start_container()

    with pytest.raises(ProviderError) as caught:
        provider.wait_for_ready(url)

    assert f": {reason}: " in str(caught.value)
    for text in texts:
        assert text in str(caught.value)
    assert [] == cluster.names()


@pytest.mark.usefixtures("cluster")
def test_server_that_never_listens_ends_in_a_timeout(provider_of):
    provider = provider_of(SILENT)
    url = provider.start_container()

    with pytest.raises(TimeoutError, match=r"within 1s: 0 of 1 Pods are ready"):
        provider.wait_for_ready(url, timeout_s=1)


@pytest.mark.usefixtures("cluster")
def test_pod_may_wait_for_a_node_that_is_being_added(provider_of):
    wish = {"requests": {"memory": "1Ti"}}
    provider = provider_of(resources=wish, schedule_timeout_s=60)
    url = provider.start_container()

    with pytest.raises(TimeoutError):
        provider.wait_for_ready(url, timeout_s=1)


@pytest.mark.parametrize("resource", ["batch/jobs", "/services"])
def test_refused_creation_leaves_nothing(cluster, provider_of, resource):
    group, _, plural = resource.partition("/")
    cluster.call(lambda: cluster.api.denied.add((group, plural, "create")))

    with pytest.raises(ProviderError, match=rf"cannot create .*{plural} is forbidden"):
        provider_of().start_container()

    assert [] == cluster.names()


@pytest.mark.usefixtures("cluster")
def test_invalid_object_is_refused_with_the_schemas_words(provider_of, monkeypatch):
    # Whatever the provider does not check itself.
    monkeypatch.delitem(_kubernetes_options._LEAST, "run_as_user")
    provider = provider_of(run_as_user="root")

    with pytest.raises(ProviderError, match=r"Job is invalid: .*runAsUser: 'root'"):
        provider.start_container()


def test_watch_that_is_forbidden_is_told(cluster, provider_of):
    cluster.call(lambda: cluster.api.denied.add(("", "pods", "watch")))
    provider = provider_of()
    url = provider.start_container()

    with pytest.raises(ProviderError, match=r"cannot follow Job .*403"):
        provider.wait_for_ready(url)


def test_objects_of_another_start_are_left_alone(cluster, provider_of):
    first, second = provider_of(SILENT, name="maze"), provider_of(SILENT, name="maze")
    try:
        first.start_container()

        with pytest.raises(ProviderError, match="already exists"):
            second.start_container()

        assert {"Job/maze", "Service/maze"} <= set(cluster.names())
    finally:
        first.stop_container()
