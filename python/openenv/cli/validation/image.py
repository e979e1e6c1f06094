"""Checks of a Dockerfile's instructions, apart from what its command serves."""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Final

from openenv.cli.manifest import MANIFEST_NAME
from openenv.cli.validation.checks import Fault, NotApplicable

if TYPE_CHECKING:
    from openenv.cli._dockerfile import Dockerfile, Instruction
    from openenv.cli.validation.package import Package

# https://docs.docker.com/reference/dockerfile/
_INSTRUCTIONS: Final = frozenset(
    {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK"}
    | {"LABEL", "MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER"}
    | {"VOLUME", "WORKDIR"}
)
# What shells, images and container engines set by themselves.
_SET_BY_OTHERS: Final = frozenset(
    {"HOME", "HOSTNAME", "LANG", "PATH", "PWD", "PYTHONPATH", "SHELL", "USER"}
)
# $NAME and ${NAME}; not ${NAME:-default}, and not what a backslash quotes.
_READ: Final = re.compile(r"(?<![\\$])\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_SET: Final = re.compile(r"(?:^|[\s;&])([A-Za-z_]\w*)=")


def instructions(package: Package) -> None:
    """Find instructions that Docker does not know."""
    for each in package.dockerfile.instructions:
        if each.name not in _INSTRUCTIONS:
            raise Fault(
                f"{package.dockerfile_name}:{each.line}: {each.name} is no instruction",
                "mend its spelling; a line that goes on ends with a backslash",
            )


def copies(package: Package) -> None:
    """Find sources outside of the folder that is built."""
    for each in [*package.dockerfile.of("COPY"), *package.dockerfile.of("ADD")]:
        for source in _sources(each):
            if posixpath.normpath(source.lstrip("/")).split("/")[0] == "..":
                raise Fault(
                    f"{package.dockerfile_name}:{each.line}: {each.name} copies "
                    f"{source} from outside of the build's folder, which is "
                    "the package's",
                    "put it into the package, or install it",
                )


def exposes(package: Package) -> None:
    """Compare the ports that are exposed with the manifest's."""
    found, port = package.dockerfile.of("EXPOSE"), package.manifest.port
    words = [word.partition("/")[0] for each in found for word in each.text.split()]
    if not words or not all(word.isdigit() for word in words):
        raise NotApplicable("the Dockerfile exposes no port that is a number")
    if str(port) not in words:
        raise Fault(
            f"{package.dockerfile_name}:{found[-1].line}: the Dockerfile exposes "
            f"{', '.join(words)}, the manifest says {port}",
            f"write EXPOSE {port}, or mend port in {MANIFEST_NAME}",
        )


def variables(package: Package) -> None:
    """Find variables of the command that are set nowhere."""
    command = package.dockerfile.command()
    if command is None:
        raise NotApplicable("there is no command")
    known = _SET_BY_OTHERS | _variables_of(package.dockerfile)
    known |= set(package.manifest.variables) | set(_SET.findall(command.text))
    for one, other in _READ.findall(command.text):
        name = one or other
        if name not in known:
            raise Fault(
                f"{package.dockerfile_name}:{command.line}: CMD reads ${name}, which "
                "nothing sets",
                f"add ENV {name}=..., or write its value",
            )


def _sources(copy: Instruction) -> list[str]:
    """Return what is copied, without the flags and the place it is copied to."""
    words = copy.text.split()
    flags = [word for word in words if word.startswith("--")]
    if "<<" in copy.text or any(flag.startswith("--from=") for flag in flags):
        return []  # a text of its own, or another stage's files
    rest = copy.text.split(" ", len(flags))[-1] if flags else copy.text
    try:
        words = [str(word) for word in json.loads(rest)]
    except (ValueError, TypeError):
        words = rest.split()
    return [word for word in words[:-1] if "://" not in word]


def _variables_of(dockerfile: Dockerfile) -> set[str]:
    found: set[str] = set()
    for each in [*dockerfile.of("ENV"), *dockerfile.of("ARG")]:
        # `ENV A=1 B=2`, and the older `ENV A 1`.
        found |= {*re.findall(r"^\w+", each.text), *_SET.findall(each.text)}
    return found
