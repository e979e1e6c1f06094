"""The provider's face: options, configuration, what happens without a cluster."""

from __future__ import annotations

import sys

import pytest

from openenv.core.containers.runtime import _kubernetes_api, _kubernetes_cluster
from openenv.core.containers.runtime._kubernetes_options import options_of
from openenv.core.containers.runtime.kubernetes_provider import KubernetesProvider
from openenv.errors import ProviderError

KUBECONFIG = """
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
"""


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG + "current-context: x\n")
    return path


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"memory": "1Gi"}, "unsupported arguments for KubernetesProvider: memory; "),
        ({"replicas": 0}, "replicas must be at least 1, not 0"),
        ({"ttl_s": 0}, "ttl_s must be at least 1, not 0"),
        ({"access": "nodeport"}, "access takes .*, not nodeport"),
        ({"security": "none"}, "security takes image and restricted, not none"),
        ({"resources": {"memory": "1Gi"}}, "resources takes .*, not memory"),
    ],
)
def test_option_that_cannot_be_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        options_of(options)


def test_cluster_that_does_not_answer_is_told(kubeconfig):
    provider = KubernetesProvider("maze", kubeconfig=kubeconfig)

    with pytest.raises(ProviderError, match=r"cannot create Job maze-.* in default: "):
        provider.start_container()


def test_image_is_needed(kubeconfig):
    with pytest.raises(ValueError, match="no image"):
        KubernetesProvider(kubeconfig=kubeconfig).start_container()


def test_wait_for_what_was_not_started_is_refused(kubeconfig):
    provider = KubernetesProvider("maze", kubeconfig=kubeconfig)

    with pytest.raises(ProviderError, match="the container was stopped"):
        provider.wait_for_ready("http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("text", "context", "complaint"),
    [
        (None, None, "not found"),
        (KUBECONFIG, None, "[Nn]o current context"),
        (KUBECONFIG, "y", "'y' not found"),
    ],
)
def test_missing_configuration_is_told(tmp_path, text, context, complaint):
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ProviderError, match=f"no cluster is configured: .*{complaint}"):
        KubernetesProvider("maze", kubeconfig=path, context=context)


def test_a_machine_without_a_cluster_is_told_what_to_set(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    with pytest.raises(
        ProviderError,
        match=r"no cluster is configured: .*; set KUBECO.*"
        r"docs/kubernetes\.md",
    ):
        KubernetesProvider()


def test_missing_extra_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, _kubernetes_cluster.__name__, None)

    with pytest.raises(ProviderError, match=r"pip install 'openenv\[kubernetes\]'"):
        KubernetesProvider("maze")


@pytest.fixture(params=[True, False], ids=["in a Pod", "outside"])
def in_pod(request, tmp_path, kubeconfig, monkeypatch):
    token = tmp_path / "token"
    if request.param:
        token.touch()
    monkeypatch.setattr(_kubernetes_api, "_SERVICE_ACCOUNT_TOKEN", token)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    return request.param


@pytest.mark.parametrize(
    ("kubeconfig_given", "access", "forwards"),
    [
        (False, "auto", {True: False, False: True}),
        (True, "auto", {True: True, False: True}),
        (False, "port-forward", {True: True, False: True}),
        (False, "service", {True: False, False: False}),
    ],
)
def test_tunnel_is_opened_where_names_lead_nowhere(
    in_pod, kubeconfig, kubeconfig_given, access, forwards
):
    cluster = _kubernetes_cluster.Cluster(
        kubeconfig if kubeconfig_given else None, None
    )
    run = cluster.run(
        cluster.workload("maze", 8000, {}, options_of({"access": access}))
    )

    assert forwards[in_pod] == (run._keeper._forward is not None)
    run.close()
