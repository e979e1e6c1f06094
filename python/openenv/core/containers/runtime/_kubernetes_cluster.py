"""A cluster as one provider sees it: where it is, and what may be started there."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from openenv.core.containers.runtime._kubernetes_api import (
    broken_told,
    is_in_cluster,
    load_config,
)
from openenv.core.containers.runtime._kubernetes_objects import Workload, workload_name
from openenv.core.containers.runtime._kubernetes_run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openenv.core.containers.runtime._kubernetes_options import KubernetesOptions

_NO_NAMESPACE: str = "default"


class Cluster:
    """Name and start workloads.

    Args:
        kubeconfig: A file, or None for what the surroundings say.
        context: One of the file's; None takes its current one.

    Raises:
        ProviderError: No cluster is configured.
    """

    def __init__(self, kubeconfig: str | Path | None, context: str | None) -> None:
        self._config = load_config(kubeconfig, context)
        self._in_cluster = kubeconfig is None and is_in_cluster()

    def workload(
        self,
        image: str,
        port: int,
        env_vars: Mapping[str, str],
        options: KubernetesOptions,
    ) -> Workload:
        """Settle the names that were left open."""
        return Workload(
            name=options.name or workload_name(image),
            namespace=options.namespace or self._config.namespace or _NO_NAMESPACE,
            image=image,
            port=port,
            env_vars=env_vars,
            options=options,
        )

    def run(self, workload: Workload) -> Run:
        """Prepare a start; nothing is created yet."""
        named = replace(workload, start_id=secrets.token_hex(8))
        with broken_told():
            return Run(self._config, named, in_cluster=self._in_cluster)
