"""What a caller may ask of the Pods of an environment, with the defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from openenv.core._client.settings import checked_wait_s
from openenv.core.containers.runtime._checked import (
    checked_mapping,
    checked_text,
    checked_text_mapping,
    checked_whole,
)
from openenv.core.containers.runtime._kubernetes_names import (
    refuse_keys,
    refuse_label_name,
    refuse_labels,
    refuse_probe_path,
    refuse_service_name,
    refuse_subdomain,
    refuse_subdomains,
)

NAME: Final = "KubernetesProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesOptions:
    """Options of `KubernetesProvider`; those not given are the cluster's defaults.

    Args:
        name: Name of the Job and the Service; None makes one of the image's.
        namespace: None takes the one of the kubeconfig's context.
        replicas: Pods that serve; all must be ready before a start is done.
        resources: ``{"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}``.
        node_selector: Labels of the nodes to run on.
        tolerations: As in a Pod, ``[{"key": "gpu", "operator": "Exists"}]``.
        service_account: Its token is mounted only where one is named.
        image_pull_policy: ``Always``, ``IfNotPresent`` or ``Never``.
        image_pull_secrets: Names of Secrets with credentials of registries.
        env_from_secrets: Names of Secrets whose keys become environment variables.
        labels: Added to all objects.
        annotations: Added to all objects.
        security: ``restricted`` passes the Pod Security Standard of that name;
            ``image`` leaves user and rights to the image and the namespace.
        run_as_user: User id under ``restricted``. Hugging Face Spaces run as 1000.
        live_path: Where the kubelet asks whether the server still works.
        ready_path: Where the kubelet asks whether the server takes sessions.
        startup_s: Seconds that the server may take until it answers first.
        stop_grace_s: Seconds that the server has to end after SIGTERM.
        schedule_timeout_s: Seconds that a Pod may wait for a node. Zero reports
            ``Unschedulable`` at once; a cluster that adds nodes needs minutes.
        ttl_s: Seconds that the objects outlive a dead owner.
        access: ``service`` uses the Service's DNS name, ``port-forward`` a tunnel
            through the API server; ``auto`` takes the first inside a cluster.
        ingress_url: The URL of an ingress that leads to the Service, used instead;
            ``{name}`` and ``{namespace}`` are filled in.
    """

    name: str | None = None
    namespace: str | None = None
    replicas: int = 1
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    service_account: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    image_pull_secrets: Sequence[str] = ()
    env_from_secrets: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    security: Literal["restricted", "image"] = "restricted"
    run_as_user: int = 1000
    live_path: str = "/health"
    ready_path: str = "/health"
    startup_s: int = 600
    stop_grace_s: int = 10
    schedule_timeout_s: float = 0.0
    ttl_s: int = 300
    access: Literal["auto", "service", "port-forward"] = "auto"
    ingress_url: str | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            checked_whole(name, getattr(self, name), least)
        checked_wait_s("schedule_timeout_s", self.schedule_timeout_s)
        for name, allowed in _WORDS.items():
            _refuse_others(name, {getattr(self, name)}, allowed)
        for name, refuse in _REFUSED_BY.items():
            if getattr(self, name) is not None:
                refuse(name, getattr(self, name))


def options_of(given: Mapping[str, Any]) -> KubernetesOptions:
    """Make options of keyword arguments.

    Raises:
        TypeError: One is of another kind; names it.
        ValueError: One is unknown or cannot be; names it.
    """
    known = {item.name for item in fields(KubernetesOptions)}
    if unknown := sorted(set(given) - known):
        message = (
            f"unsupported arguments for {NAME}: {', '.join(unknown)}; "
            f"there are {', '.join(sorted(known))}"
        )
        raise ValueError(message)
    return KubernetesOptions(**given)


def _refuse_others(name: str, given: set[Any], allowed: frozenset[Any]) -> None:
    if others := sorted(map(str, given - allowed)):
        words = sorted(filter(None, allowed))
        message = f"{name} takes {' and '.join(words)}, not {', '.join(others)}"
        raise ValueError(message)


def _refuse_resources(name: str, value: object) -> None:
    asked = checked_mapping(name, value, '{"limits": {"memory": "1Gi"}}')
    _refuse_others(name, set(asked), frozenset({"requests", "limits"}))
    for kind, amounts in asked.items():
        checked_text_mapping(f"{name}[{kind!r}]", amounts)


def _refuse_tolerations(name: str, value: object) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        message = f"{name} must be a sequence of mappings, not {type(value).__name__}"
        raise TypeError(message)
    for item in value:
        checked_mapping(f"each of {name}", item, '{"operator": "Exists"}')


def _refuse_ingress_url(name: str, value: object) -> None:
    url = checked_text(name, value)
    try:
        filled = url.format(name="name", namespace="namespace")
    except (LookupError, ValueError, AttributeError, TypeError):
        filled = ""
    if not filled.startswith(("http://", "https://")):
        message = (
            f"{name} must be a URL in which {{name}} and {{namespace}} are filled in, "
            f"not {url!r}"
        )
        raise ValueError(message)


_LEAST: Final = {
    "replicas": 1,
    "run_as_user": 0,
    "startup_s": 1,
    "stop_grace_s": 0,
    "ttl_s": 1,
}
_WORDS: Final[dict[str, frozenset[str | None]]] = {
    "access": frozenset({"auto", "service", "port-forward"}),
    "image_pull_policy": frozenset({None, "Always", "IfNotPresent", "Never"}),
    "security": frozenset({"restricted", "image"}),
}
_REFUSED_BY: Final[dict[str, Callable[[str, object], object]]] = {
    "annotations": refuse_keys,
    "env_from_secrets": refuse_subdomains,
    "image_pull_secrets": refuse_subdomains,
    "ingress_url": _refuse_ingress_url,
    "labels": refuse_labels,
    "live_path": refuse_probe_path,
    "name": refuse_service_name,
    "namespace": refuse_label_name,
    "node_selector": refuse_labels,
    "ready_path": refuse_probe_path,
    "resources": _refuse_resources,
    "service_account": refuse_subdomain,
    "tolerations": _refuse_tolerations,
}
