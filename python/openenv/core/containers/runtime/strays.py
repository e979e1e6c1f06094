"""Containers and services whose owner was killed before it could remove them.

Every one of them carries its owner's labels (`_owner`). The next start of a Docker
provider on the same machine removes what it finds, and so does
``openenv stop --strays``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from openenv.core.containers.runtime._docker_engine import (
    connect,
    gone_is_fine,
    is_manager,
    told,
)
from openenv.core.containers.runtime._owner import PID_LABEL, is_orphaned
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from docker import DockerClient

_NAME = "strays"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """One container or Swarm service that nobody owns any more."""

    kind: Literal["container", "service"]
    id: str
    name: str
    image: str
    owner_pid: int


def find_strays() -> list[Stray]:
    """Find what processes of this machine left behind when they were killed.

    Raises:
        ProviderError: The engine does not answer.
    """
    client = connect(_NAME)
    try:
        with told(_NAME, "cannot list containers"):
            return list(_strays(client))
    finally:
        client.close()


def remove_strays() -> list[Stray]:
    """Remove what `find_strays` finds, running or not, and return it.

    What the engine refuses to remove is logged as a warning, left out, and left there.

    Raises:
        ProviderError: The engine does not answer.
    """
    client = connect(_NAME)
    try:
        return remove_strays_of(client)
    finally:
        client.close()


def remove_strays_of(client: DockerClient) -> list[Stray]:
    """Do what `remove_strays` does on an engine that is connected already."""
    with told(_NAME, "cannot list strays"):
        found = list(_strays(client))
    return [stray for stray in found if _is_removed(client, stray)]


def _is_removed(client: DockerClient, stray: Stray) -> bool:
    # One that cannot be removed must not be the end of every later start.
    try:
        with told(_NAME, f"cannot remove stray {stray.kind} {stray.name}"):
            _remove(client, stray)
    except ProviderError as exc:
        _log.warning("%s", exc)
        return False
    return True


def _remove(client: DockerClient, stray: Stray) -> None:
    with gone_is_fine():
        if stray.kind == "service":
            client.api.remove_service(stray.id)  # type: ignore[no-untyped-call]
        else:
            client.api.remove_container(stray.id, v=True, force=True)


def _strays(client: DockerClient) -> Iterator[Stray]:
    filters = {"label": PID_LABEL}
    # Not the objects of the SDK, which ask for each container again: it may be gone.
    for each in client.api.containers(all=True, filters=filters):
        name = (each["Names"] or [""])[0].lstrip("/")
        yield from _if_orphaned(
            "container", each["Id"], name, each["Image"], each["Labels"]
        )
    for each in _services(client, filters):
        spec = each["Spec"]
        image = spec["TaskTemplate"]["ContainerSpec"]["Image"]
        yield from _if_orphaned(
            "service", each["ID"], spec["Name"], image, spec["Labels"]
        )


def _services(client: DockerClient, filters: Mapping[str, str]) -> list[Any]:
    if not is_manager(client):
        return []
    found: list[Any] = client.api.services(filters)  # type: ignore[no-untyped-call]
    return found


def _if_orphaned(
    kind: Literal["container", "service"],
    id_: str,
    name: str,
    image: str,
    labels: Mapping[str, str],
) -> Iterator[Stray]:
    if is_orphaned(labels):
        owner_pid = int(labels[PID_LABEL])
        yield Stray(kind=kind, id=id_, name=name, image=image, owner_pid=owner_pid)
