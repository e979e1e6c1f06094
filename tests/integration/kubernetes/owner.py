"""A process that starts an environment and then ends, or waits to be killed."""

from __future__ import annotations

import signal
import sys

from tests.integration.kubernetes.cluster.images import SILENT

from openenv.core.containers.runtime.kubernetes_provider import KubernetesProvider


def main(kubeconfig: str, ttl_s: str, end: str) -> None:
    provider = KubernetesProvider(SILENT, kubeconfig=kubeconfig, ttl_s=int(ttl_s))
    provider.start_container()
    if end == "killed":
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
