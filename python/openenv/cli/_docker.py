"""The Docker engine: build an image, push it, list and stop containers."""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from openenv.cli._console import CommandFailed, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    # Told each line of the builder's output.
    Told = Callable[[str], None]

_SHOWN_LINES: Final = 20
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True)
class BuildOptions:
    """What is built from which folder."""

    folder: Path
    dockerfile: str
    tag: str
    labels: Mapping[str, str]
    arguments: Mapping[str, str] = field(default_factory=dict)
    platform: str | None = None
    no_cache: bool = False
    push: bool = False


class Engine:
    """A connection to the engine that the `docker` command talks to.

    Raises:
        CommandFailed: the SDK is missing, or no engine answers.
    """

    def __init__(self) -> None:
        try:
            # Here, because it is an extra, and slow to import.
            import docker  # noqa: PLC0415
            from docker.errors import DockerException  # noqa: PLC0415
        except ModuleNotFoundError as error:
            message = f"this needs the package {error.name!r}: pip install docker"
            raise CommandFailed(message) from None
        try:
            self.client = docker.from_env()
        except (DockerException, OSError) as error:
            raise _no_answer(error) from None
        try:
            self.client.ping()
        except (DockerException, OSError) as error:
            self.client.close()
            raise _no_answer(error) from None

    def build(self, options: BuildOptions, told: Told) -> None:
        """Build with the engine's classic builder.

        Raises:
            CommandFailed: a step failed; its last output is in the message.
        """
        self._follow(lambda: self._build(options), "build", told)

    def push(self, tag: str, told: Told) -> None:
        """Push an image to the registry that its tag names.

        Raises:
            CommandFailed: the registry refused it.
        """
        push = self.client.api.push
        self._follow(lambda: push(tag, stream=True, decode=True), "push", told)

    def size_mb(self, tag: str) -> float:
        """Tell the size of an image, in megabytes."""
        return float(self.client.images.get(tag).attrs["Size"]) / _MEGABYTE

    def images(self) -> list[Any]:
        """List the images of environments."""
        return list(self.client.images.list(filters={"label": "openenv.name"}))

    def containers(self) -> list[Any]:
        """List the running containers of environments' images.

        The engine hands an image's labels on to its containers.
        """
        return list(self.client.containers.list(filters={"label": "openenv.name"}))

    def _build(self, options: BuildOptions) -> Iterable[dict[str, Any]]:
        answers: Iterable[dict[str, Any]] = self.client.api.build(
            path=str(options.folder),
            dockerfile=options.dockerfile,
            tag=options.tag,
            buildargs=dict(options.arguments),
            labels=dict(options.labels),
            platform=options.platform,
            nocache=options.no_cache,
            rm=True,
            forcerm=True,
            decode=True,
        )
        return answers

    def _follow(
        self, ask: Callable[[], Iterable[dict[str, Any]]], what: str, told: Told
    ) -> None:
        from docker.errors import DockerException  # noqa: PLC0415 - as above

        lines: deque[str] = deque(maxlen=_SHOWN_LINES)
        try:
            for answer in ask():
                if "error" in answer:
                    raise _failed(what, [*lines, answer["error"]])
                text = answer.get("stream") or answer.get("status") or ""
                for line in filter(None, map(str.rstrip, text.splitlines())):
                    lines.append(line)
                    told(plain(line))
        except (DockerException, OSError) as error:
            # What the engine says, without the request's URL.
            said = getattr(error, "explanation", None) or error
            raise _failed(what, [*lines, str(said)]) from None


def has_buildx() -> bool:
    """Tell whether the `docker` command has BuildKit's front end."""
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(
        ["docker", "buildx", "version"],  # noqa: S607 - the user's own
        capture_output=True,
        check=False,
    )
    return asked.returncode == 0


def buildx_command(options: BuildOptions) -> list[str]:
    """Write the command that builds with BuildKit."""
    command = ["docker", "buildx", "build", "--tag", options.tag]
    command += ["--file", str(options.folder / options.dockerfile)]
    command += ["--push" if options.push else "--load"]
    if options.platform:
        command += ["--platform", options.platform]
    if options.no_cache:
        command += ["--no-cache"]
    for name, value in options.arguments.items():
        command += ["--build-arg", f"{name}={value}"]
    for name, value in options.labels.items():
        command += ["--label", f"{name}={value}"]
    return [*command, str(options.folder)]


def build_by_buildx(options: BuildOptions, told: Told) -> None:
    """Build with BuildKit.

    Raises:
        CommandFailed: a step failed; its last output is in the message.
    """
    lines: deque[str] = deque(maxlen=_SHOWN_LINES)
    with subprocess.Popen(  # noqa: S603 - the user's own docker
        [*buildx_command(options), "--progress", "plain"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in filter(None, map(str.rstrip, process.stdout or ())):
            lines.append(line)
            told(plain(line))
    if process.returncode:
        raise _failed("build", lines)


def _no_answer(error: Exception) -> CommandFailed:
    return CommandFailed(f"the Docker engine does not answer: {error}")


def _failed(what: str, lines: Iterable[str]) -> CommandFailed:
    shown = "\n".join(f"  {line.rstrip()}" for line in lines)
    return CommandFailed(f"the {what} failed; the last output:\n{shown}")
