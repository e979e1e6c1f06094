"""The objects that are created, held against the schemas of many versions."""

from __future__ import annotations

import kubernetes_validate
import msgspec.yaml
import pytest

from openenv.core.containers.runtime._kubernetes_objects import workload_name
from openenv.core.containers.runtime.kubernetes_provider import KubernetesProvider

VERSIONS = ["1.25", "1.30", "1.37"]
ALL_OPTIONS = {
    "name": "maze",
    "namespace": "rl",
    "replicas": 3,
    "resources": {
        "requests": {"cpu": "500m"},
        "limits": {"memory": "1Gi", "nvidia.com/gpu": "1"},
    },
    "node_selector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "service_account": "maze",
    "image_pull_policy": "Always",
    "image_pull_secrets": ["registry"],
    "env_from_secrets": ["keys"],
    "labels": {"team": "rl"},
    "annotations": {"example.org/run": "7"},
    "security": "image",
    "live_path": "/health/live",
    "ready_path": "/health/ready",
    "startup_s": 60,
    "stop_grace_s": 5,
    "ttl_s": 120,
}


@pytest.fixture
def provider(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("""
        clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
        users: [{name: u, user: {token: t}}]
        contexts: [{name: x, context: {cluster: c, user: u, namespace: mine}}]
        current-context: x
    """)
    return KubernetesProvider("registry.test/maze:1", kubeconfig=kubeconfig)


def rendered(provider, **arguments):
    text = provider.render(**arguments)
    return [msgspec.yaml.decode(part) for part in text.split("---\n")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("options", [{}, ALL_OPTIONS], ids=["defaults", "all options"])
def test_rendered_objects_fit_the_schemas(provider, version, options):
    objects = rendered(provider, env_vars={"SIZE": "9"}, port=7860, **options)

    for item in objects:
        assert version == kubernetes_validate.validate(item, version, strict=True)
    assert ["Job", "Service"] == [item["kind"] for item in objects]


def test_every_option_has_its_place(provider):
    job, service = rendered(provider, env_vars={"SIZE": "9"}, port=7860, **ALL_OPTIONS)
    spec, template = job["spec"], job["spec"]["template"]
    pod = template["spec"]
    (container,) = pod["containers"]

    for item in (job, service):
        assert "maze" == item["metadata"]["name"]
        assert "rl" == item["metadata"]["namespace"]
    for item in (job, service, template):
        assert "rl" == item["metadata"]["labels"]["team"]
        assert {"example.org/run": "7"} == item["metadata"]["annotations"]
    assert 3 == spec["parallelism"] == spec["completions"]
    assert 120 == spec["activeDeadlineSeconds"]
    assert ALL_OPTIONS["resources"] == container["resources"]
    assert {"pool": "gpu"} == pod["nodeSelector"]
    assert ALL_OPTIONS["tolerations"] == pod["tolerations"]
    assert "maze" == pod["serviceAccountName"]
    assert pod["automountServiceAccountToken"] is True
    assert "Always" == container["imagePullPolicy"]
    assert [{"name": "registry"}] == pod["imagePullSecrets"]
    assert [{"name": "SIZE", "value": "9"}] == container["env"]
    assert [{"secretRef": {"name": "keys"}}] == container["envFrom"]
    assert "securityContext" not in pod
    assert "securityContext" not in container
    assert "/health/live" == container["livenessProbe"]["httpGet"]["path"]
    assert "/health/live" == container["startupProbe"]["httpGet"]["path"]
    assert "/health/ready" == container["readinessProbe"]["httpGet"]["path"]
    assert 60 == container["startupProbe"]["failureThreshold"]
    assert 5 == pod["terminationGracePeriodSeconds"]
    assert 7860 == container["ports"][0]["containerPort"]
    assert 7860 == service["spec"]["ports"][0]["port"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()


def test_pods_are_restricted_and_have_no_token_by_default(provider):
    job, _ = rendered(provider)
    pod = job["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    } == pod["securityContext"]
    assert {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    } == pod["containers"][0]["securityContext"]


def test_namespace_is_the_contexts_where_none_is_given(provider):
    assert {"mine"} == {item["metadata"]["namespace"] for item in rendered(provider)}


@pytest.mark.parametrize(
    ("image", "base"),
    [
        ("echo-env", "echo-env"),
        ("registry.test:5000/Team/Grid_World:1.2", "grid-world"),
        ("maze@sha256:" + "0" * 64, "maze"),
        ("2048:latest", "env-2048"),
        ("_:1", "env"),
        ("x" * 39 + "-y" * 30, "x" * 39),
    ],
)
def test_name_is_a_dns_label_of_the_images(image, base):
    name = workload_name(image)

    assert base == name[:-9]
    assert "-" == name[-9]
    assert len(name) <= 57
    assert name != workload_name(image)
