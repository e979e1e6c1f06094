"""What a caller may ask of the Pods of an environment, with the defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        for name in ("replicas", "startup_s", "ttl_s"):
            if getattr(self, name) < 1:
                message = f"{name} must be at least 1, not {getattr(self, name)}"
                raise ValueError(message)
        _refuse_others("security", {self.security}, {"restricted", "image"})
        _refuse_others("access", {self.access}, {"auto", "service", "port-forward"})
        _refuse_others("resources", set(self.resources), {"requests", "limits"})


def options_of(given: Mapping[str, Any]) -> KubernetesOptions:
    """Make options of keyword arguments.

    Raises:
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


def _refuse_others(name: str, given: set[str], allowed: set[str]) -> None:
    if others := sorted(given - allowed):
        message = (
            f"{name} takes {' and '.join(sorted(allowed))}, not {', '.join(others)}"
        )
        raise ValueError(message)
