"""What a container is asked to be: its options, its name, the port its server uses."""

from __future__ import annotations

import io
import re
import secrets
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from openenv.core.containers.runtime._checked import (
    checked_command,
    checked_port,
    checked_positive,
    checked_text,
    checked_text_mapping,
    checked_texts,
    checked_whole,
)
from openenv.core.containers.runtime._docker_engine import (
    device_request,
    gone_is_fine,
    refuse_memory,
)
from openenv.core.containers.runtime._owner import own_labels
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docker import DockerClient

PORT_LABEL: Final = "openenv.port"
DEFAULT_PORT: Final = 8000
_MANIFEST: Final = "/app/env/openenv.yaml"
_MANIFEST_PORT: Final = re.compile(rb"^port:\s*['\"]?(\d+)", re.MULTILINE)
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerOptions:
    """Hold what may be asked of a container; all of it is optional.

    Attributes:
        container_port: Where the server listens inside; None finds it out.
        volumes: As the SDK takes them: ``{"/host": {"bind": "/inside", "mode":
            "ro"}}`` or ``["/host:/inside:ro"]``.
        network: A network's name; with ``host`` the server's own port is used.
        memory: Limit such as ``512m``, or bytes.
        cpus: Limit such as 1.5.
        gpus: How many, or ``all``.
        init: Whether a small init is process 1, so that signals reach the server and
            zombies are reaped.
        command: Instead of the image's.
        labels: Labels besides the owner's.
        publish_host: The engine's IP address at which the port is published.
    """

    container_port: int | None = None
    volumes: Mapping[str, Mapping[str, str]] | Sequence[str] | None = None
    network: str | None = None
    memory: str | int | None = None
    cpus: float | None = None
    gpus: int | str | None = None
    init: bool = True
    command: str | Sequence[str] | None = None
    labels: Mapping[str, str] | None = None
    publish_host: str | None = None

    def __post_init__(self) -> None:
        checked_port("container_port", self.container_port)
        checked_positive("cpus", self.cpus)
        checked_command(self.command)
        if self.volumes is not None and not isinstance(self.volumes, Mapping):
            checked_texts("volumes", self.volumes)
        if self.network is not None:
            checked_text("network", self.network)
        if self.memory is not None:
            refuse_memory("memory", self.memory)
        if self.gpus is not None and self.gpus != "all":
            checked_whole("gpus, unless 'all',", self.gpus, 1)
        if self.labels is not None:
            checked_text_mapping("labels", self.labels)
        if self.publish_host is not None:
            publish_address(self.publish_host)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the SDK's ``create`` for all but ports."""
        return {
            "volumes": self.volumes,
            "network": self.network,
            "mem_limit": self.memory,
            "nano_cpus": None if self.cpus is None else round(self.cpus * 1e9),
            "device_requests": None if self.gpus is None else device_request(self.gpus),
            "init": self.init,
            "command": self.command,
            "labels": {
                **checked_text_mapping("labels", self.labels or {}),
                **own_labels(),
            },
        }


def options_of(provider: str, given: Mapping[str, Any]) -> ContainerOptions:
    """Make options of keyword arguments.

    Raises:
        TypeError: One is of another kind; names it.
        ValueError: One is unknown or cannot be; names it.
    """
    known = {field.name for field in fields(ContainerOptions)}
    if unknown := sorted(set(given) - known):
        message = (
            f"unsupported arguments for {provider}: {', '.join(unknown)}; "
            f"there are {', '.join(sorted(known))}"
        )
        raise ValueError(message)
    return ContainerOptions(**given)


def publish_address(host: str) -> str:
    """Return the IP address of the engine's at which a port is to be published.

    The engine publishes on all of its addresses for what is none.

    Raises:
        ValueError: It is neither an IP address nor ``localhost``.
    """
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ip_address(checked_text("publish_host", host)))
    except ValueError:
        message = f"publish_host must be an IP address, not {host!r}"
        raise ValueError(message) from None


def container_name(image: str, infix: str = "") -> str:
    """Make a name of an image's last part and eight random digits.

    Upstream takes the time in milliseconds, which two starts may share.
    """
    base = image.partition("@")[0].rsplit("/", 1)[-1].partition(":")[0]
    base = _NOT_IN_NAMES.sub("-", base).strip("-._") or "openenv"
    return f"{base}{infix}-{secrets.token_hex(4)}"


def container_port(client: DockerClient, image: Any, provider: str) -> int:  # noqa: ANN401 - the SDK's
    """Find out at which port an image's server listens.

    The label ``openenv.port`` says so, else the only port of EXPOSE, else ``port`` in
    the image's ``openenv.yaml``, else it is 8000, as in upstream's images.

    Args:
        client: The engine.
        image: The SDK's image.
        provider: Who asks, for the error.

    Raises:
        ProviderError: The label is no port.
    """
    config = image.attrs.get("Config") or {}
    label = (config.get("Labels") or {}).get(PORT_LABEL)
    if label is not None:
        if not label.isdecimal():
            message = f"label {PORT_LABEL} of the image is {label!r}, not a port"
            raise ProviderError(message, provider)
        return int(label)
    exposed = [
        int(port)
        for port, _, protocol in (
            each.partition("/") for each in config.get("ExposedPorts") or ()
        )
        if protocol in {"", "tcp"}
    ]
    if len(exposed) == 1:
        return exposed[0]
    return _manifest_port(client, image) or DEFAULT_PORT


def _manifest_port(client: DockerClient, image: Any) -> int | None:  # noqa: ANN401 - the SDK's
    # A file of an image can be read from a container only; this one never runs.
    shell = client.containers.create(image.id, command="true", labels=own_labels())
    archive = b""
    try:
        with gone_is_fine():
            chunks, _ = client.api.get_archive(str(shell.id), _MANIFEST)
            archive = b"".join(chunks)
    finally:
        shell.remove(v=True, force=True)
    if not archive:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.next()
        content = tar.extractfile(member) if member is not None else None
        found = _MANIFEST_PORT.search(content.read()) if content is not None else None
    return int(found[1]) if found else None
