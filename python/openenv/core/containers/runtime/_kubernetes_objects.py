"""The objects of one environment: a Job that runs its Pods, and a Service before them.

A Job, because it is the one controller of Kubernetes that ends by itself: at
`activeDeadlineSeconds` its Pods are stopped, `ttlSecondsAfterFinished` later it is
deleted, and the Service goes with it, as its owner reference says. The provider moves
the deadline on for as long as it lives.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec.yaml
from lightkube.models.batch_v1 import JobSpec
from lightkube.models.core_v1 import (
    Capabilities,
    Container,
    ContainerPort,
    EnvFromSource,
    EnvVar,
    HTTPGetAction,
    LocalObjectReference,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    Probe,
    ResourceRequirements,
    SeccompProfile,
    SecretEnvSource,
    SecurityContext,
    ServicePort,
    ServiceSpec,
    Toleration,
)
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openenv.core.containers.runtime._kubernetes_options import KubernetesOptions

INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
START_ANNOTATION: Final = "openenv.dev/start"
CONTAINER: Final = "environment"
_PORT_NAME: Final = "http"
_MANAGER: Final = {"app.kubernetes.io/managed-by": "openenv"}

# Names become DNS labels, of 63 letters; a Job's Pods have six more.
_LONGEST_BASE: Final = 40
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")

# A finished Job keeps no Pod busy; for a minute it tells whoever looks how it ended.
_FINISHED_TTL_S: Final = 60
# Restarts of one Pod's container before the Job gives up; the default of Kubernetes.
_RESTARTS: Final = 6

_PROBE_TIMEOUT_S: Final = 5
_READY_PERIOD_S: Final = 2
_LIVE_PERIOD_S: Final = 10
_LIVE_FAILURES: Final = 6  # a minute: ending a server ends all its sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One environment as asked for, all names settled.

    `start_id` tells the objects of one start from others of their name.
    """

    name: str
    namespace: str
    image: str
    port: int
    env_vars: Mapping[str, str]
    options: KubernetesOptions
    start_id: str | None = None

    def job(self) -> Job:
        """Return the Job that runs the Pods."""
        options = self.options
        return Job(
            apiVersion="batch/v1",
            kind="Job",
            metadata=self._metadata(),
            spec=JobSpec(
                parallelism=options.replicas,
                completions=options.replicas,
                backoffLimit=_RESTARTS,
                activeDeadlineSeconds=options.ttl_s,
                ttlSecondsAfterFinished=min(options.ttl_s, _FINISHED_TTL_S),
                template=PodTemplateSpec(
                    metadata=ObjectMeta(
                        labels=self._labels(),
                        annotations=self._annotations() or None,
                    ),
                    spec=self._pod(),
                ),
            ),
        )

    def service(self, owner: Job | None) -> Service:
        """Return the Service in front of the Pods.

        Args:
            owner: The Job as the cluster knows it, whose end is the Service's as well.
        """
        references = None if owner is None else [_reference(owner)]
        port = ServicePort(name=_PORT_NAME, port=self.port, targetPort=_PORT_NAME)
        return Service(
            apiVersion="v1",
            kind="Service",
            metadata=self._metadata(references),
            spec=ServiceSpec(selector={INSTANCE_LABEL: self.name}, ports=[port]),
        )

    def yaml(self) -> str:
        """Return both objects as YAML documents."""
        documents = (self.job(), self.service(None))
        return "---\n".join(msgspec.yaml.encode(item).decode() for item in documents)

    def _labels(self) -> dict[str, str]:
        return {**self.options.labels, **_MANAGER, INSTANCE_LABEL: self.name}

    def _annotations(self) -> dict[str, str]:
        own = {START_ANNOTATION: self.start_id} if self.start_id else {}
        return {**self.options.annotations, **own}

    def _metadata(self, owners: list[OwnerReference] | None = None) -> ObjectMeta:
        return ObjectMeta(
            name=self.name,
            namespace=self.namespace,
            labels=self._labels(),
            annotations=self._annotations() or None,
            ownerReferences=owners,
        )

    def _pod(self) -> PodSpec:
        options = self.options
        return PodSpec(
            containers=[self._container()],
            restartPolicy="OnFailure",
            terminationGracePeriodSeconds=options.stop_grace_s,
            # An environment runs what a model wrote: it gets no token unless asked
            # for, and no addresses of other Services in its variables.
            automountServiceAccountToken=options.service_account is not None,
            enableServiceLinks=False,
            serviceAccountName=options.service_account,
            imagePullSecrets=[
                LocalObjectReference(name=name) for name in options.image_pull_secrets
            ]
            or None,
            nodeSelector=dict(options.node_selector) or None,
            tolerations=[
                msgspec.convert(dict(item), Toleration) for item in options.tolerations
            ]
            or None,
            securityContext=self._pod_security(),
        )

    def _container(self) -> Container:
        options = self.options
        return Container(
            name=CONTAINER,
            image=self.image,
            imagePullPolicy=options.image_pull_policy,
            ports=[ContainerPort(name=_PORT_NAME, containerPort=self.port)],
            env=[EnvVar(name=k, value=v) for k, v in self.env_vars.items()] or None,
            envFrom=[
                EnvFromSource(secretRef=SecretEnvSource(name=name))
                for name in options.env_from_secrets
            ]
            or None,
            resources=_resources(options.resources),
            # The status then tells the last lines of a server that failed, also when
            # another container has taken its place.
            terminationMessagePolicy="FallbackToLogsOnError",
            securityContext=self._container_security(),
            startupProbe=_probe(options.live_path, 1, options.startup_s),
            readinessProbe=_probe(options.ready_path, _READY_PERIOD_S, 3),
            livenessProbe=_probe(options.live_path, _LIVE_PERIOD_S, _LIVE_FAILURES),
        )

    def _pod_security(self) -> PodSecurityContext | None:
        if self.options.security != "restricted":
            return None
        return PodSecurityContext(
            runAsNonRoot=True,
            runAsUser=self.options.run_as_user,
            seccompProfile=SeccompProfile(type="RuntimeDefault"),
        )

    def _container_security(self) -> SecurityContext | None:
        if self.options.security != "restricted":
            return None
        return SecurityContext(
            allowPrivilegeEscalation=False, capabilities=Capabilities(drop=["ALL"])
        )


def workload_name(image: str) -> str:
    """Make a name of an image's last part and eight random digits."""
    base = image.partition("@")[0].rsplit("/", 1)[-1].partition(":")[0].lower()
    base = _NOT_IN_NAMES.sub("-", base)[:_LONGEST_BASE].strip("-")
    if not base[:1].isalpha():  # a Service's name begins with a letter (RFC 1035)
        base = f"env-{base}".strip("-")
    return f"{base}-{secrets.token_hex(4)}"


def _reference(job: Job) -> OwnerReference:
    metadata: Any = job.metadata
    return OwnerReference(
        apiVersion="batch/v1", kind="Job", name=metadata.name, uid=metadata.uid
    )


def _resources(asked: Mapping[str, Mapping[str, str]]) -> ResourceRequirements | None:
    if not asked:
        return None
    return ResourceRequirements(
        requests=dict(asked.get("requests", {})) or None,
        limits=dict(asked.get("limits", {})) or None,
    )


def _probe(path: str, period_s: int, failures: int) -> Probe:
    return Probe(
        httpGet=HTTPGetAction(path=path, port=_PORT_NAME),
        periodSeconds=period_s,
        timeoutSeconds=_PROBE_TIMEOUT_S,
        failureThreshold=failures,
    )
