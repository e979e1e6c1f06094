"""Providers: from an image, a folder or a repository to the URL of a server.

Names are imported when first used, so that none needs the libraries of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv.core._faces import lazy_getattr

if TYPE_CHECKING:
    from openenv.core.containers.runtime.docker_swarm_provider import (
        DockerSwarmProvider as DockerSwarmProvider,
    )
    from openenv.core.containers.runtime.kubernetes_provider import (
        KubernetesProvider as KubernetesProvider,
    )
    from openenv.core.containers.runtime.local_docker_provider import (
        LocalDockerProvider as LocalDockerProvider,
    )
    from openenv.core.containers.runtime.process_provider import (
        ProcessProvider as ProcessProvider,
    )
    from openenv.core.containers.runtime.providers import (
        ContainerProvider as ContainerProvider,
        RuntimeProvider as RuntimeProvider,
    )
    from openenv.core.containers.runtime.strays import (
        Stray as Stray,
        find_strays as find_strays,
        remove_strays as remove_strays,
    )
    from openenv.core.containers.runtime.uv_provider import UVProvider as UVProvider

_HERE = "openenv.core.containers.runtime"
_MODULES: dict[str, tuple[str, ...]] = {
    f"{_HERE}.providers": ("ContainerProvider", "RuntimeProvider"),
    f"{_HERE}.kubernetes_provider": ("KubernetesProvider",),
    f"{_HERE}.local_docker_provider": ("LocalDockerProvider",),
    f"{_HERE}.docker_swarm_provider": ("DockerSwarmProvider",),
    f"{_HERE}.uv_provider": ("UVProvider",),
    f"{_HERE}.process_provider": ("ProcessProvider",),
    f"{_HERE}.strays": ("Stray", "find_strays", "remove_strays"),
}

__all__ = [
    "ContainerProvider",
    "DockerSwarmProvider",
    "KubernetesProvider",
    "LocalDockerProvider",
    "ProcessProvider",
    "RuntimeProvider",
    "Stray",
    "UVProvider",
    "find_strays",
    "remove_strays",
]

if not TYPE_CHECKING:  # a checker shall find a wrong name
    __getattr__ = lazy_getattr(__name__, _MODULES, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
