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
        ({"replicas": 0}, "replicas must be a whole number of at least 1, not 0"),
        ({"replicas": "4"}, "replicas must be a whole number .*, not str"),
        ({"ttl_s": 0}, "ttl_s must be a whole number of at least 1, not 0"),
        ({"schedule_timeout_s": "x"}, "schedule_timeout_s must be seconds"),
        ({"resources": [1]}, "resources must be a mapping .*, not list"),
        ({"resources": {"limits": 5}}, r"resources\['limits'\] must be a mapping"),
        ({"tolerations": "x"}, "tolerations must be a sequence of mappings, not str"),
        ({"tolerations": ["x"]}, "each of tolerations must be a mapping"),
        ({"ingress_url": "http://{nam}"}, "ingress_url must be a URL .*{nam}"),
        ({"ingress_url": "{name}"}, "ingress_url must be a URL"),
        ({"ingress_url": "http://{"}, "ingress_url must be a URL"),
        ({"image_pull_policy": "Maybe"}, "image_pull_policy takes .*, not Maybe"),
        ({"image_pull_secrets": "mine"}, "image_pull_secrets must be a sequence"),
        ({"env_from_secrets": ["A B"]}, "each of env_from_secrets must be lower-case"),
        ({"name": "Maze"}, "name must be lower-case letters"),
        ({"name": "9maze"}, "name must be .*, a letter first, not '9maze'"),
        ({"name": "m" * 64}, "name must be .* at most 63"),
        ({"namespace": "a.b"}, "namespace must be lower-case letters"),
        ({"service_account": "a_b"}, "service_account must be lower-case letters"),
        ({"labels": {"a b": "c"}}, "each key of labels must be letters"),
        ({"labels": {"-/a": "c"}}, "the domain of '-/a' in labels must be lower-case"),
        ({"labels": {"a": "b c"}}, r"labels\['a'\] must be letters"),
        ({"annotations": {"": "c"}}, "each key of annotations must not be empty"),
        ({"node_selector": ["a"]}, "node_selector must be a mapping"),
        ({"live_path": "health"}, "live_path must begin with '/', not 'health'"),
        ({"ready_path": ""}, "ready_path must not be empty"),
        ({"access": "nodeport"}, "access takes .*, not nodeport"),
        ({"security": "none"}, "security takes image and restricted, not none"),
        ({"resources": {"memory": "1Gi"}}, "resources takes .*, not memory"),
    ],
)
def test_option_that_cannot_be_is_refused(options, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        options_of(options)


def test_options_that_the_api_server_takes():
    options_of(
        {
            "name": "maze-1",
            "labels": {"example.org/a.b_c": "", "team": "A.b"},
            "annotations": {"example.org/a": "any text"},
            "env_from_secrets": ["my.secret"],
            "ingress_url": "https://{name}.{namespace}.example.org",
        }
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"port": 0}, "port must be .* at least 1, .*not 0"),
        ({"port": "80"}, "port must be a whole number"),
        ({"env_vars": ["A=1"]}, "env_vars must be a mapping"),
        ({"env_vars": {"9 A": "1"}}, "each key of env_vars must be letters.*'9 A'"),
        ({"kubeconfig": 5}, "kubeconfig must be a path, not int"),
    ],
)
def test_a_constructor_names_what_cannot_be(kubeconfig, options, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        KubernetesProvider("maze", **{"kubeconfig": kubeconfig, **options})


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "",
        "clusters: []",
        "clusters: 5\ncontexts: []",
        KUBECONFIG.replace("cluster: c", "cluster: d") + "current-context: x\n",
        KUBECONFIG.replace("user: u}", "user: v}") + "current-context: x\n",
    ],
)
def test_a_broken_configuration_is_told(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    with pytest.raises(ProviderError, match=r"(?s)kubeconfig .*; set KUBECONFIG"):
        KubernetesProvider("maze", kubeconfig=path).start_container()


def test_a_certificate_that_is_not_there_is_told(tmp_path):
    path = tmp_path / "kubeconfig"
    files = "client-certificate: /nowhere, client-key: /nowhere"
    text = KUBECONFIG.replace("token: t", files).replace("http:", "https:")
    path.write_text(text + "current-context: x\n")

    with pytest.raises(ProviderError, match="names what cannot be used"):
        KubernetesProvider("maze", kubeconfig=path).start_container()


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
