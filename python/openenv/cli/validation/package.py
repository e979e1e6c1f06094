"""Checks of a package's files; nothing of the package is run."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from openenv.cli._dockerfile import Dockerfile
from openenv.cli.manifest import (
    MANIFEST_NAME,
    Manifest,
    Problem,
    ReadManifest,
    read_manifest,
)
from openenv.cli.validation import image
from openenv.cli.validation.checks import Check, Fault, NotApplicable, Verdict
from openenv.cli.validation.dependencies import NotInstalled, normal, undeclared

if TYPE_CHECKING:
    from pathlib import Path

_REQUIREMENT_NAME: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_OPENENV_NAMES: Final = frozenset({"openenv", "openenv-core"})
_DOCKERFILES: Final = ("server/Dockerfile", "Dockerfile")


@dataclass(frozen=True)
class Package:
    """An environment's folder, read as far as the checks ask for it."""

    folder: Path

    @cached_property
    def manifest_file(self) -> ReadManifest:
        """The manifest and its problems."""
        return read_manifest(self.folder / MANIFEST_NAME)

    @property
    def manifest(self) -> Manifest:
        """The manifest of a folder whose manifest is good."""
        manifest = self.manifest_file.manifest
        if manifest is None:
            raise NotApplicable(f"needs a good {MANIFEST_NAME}")
        return manifest

    @cached_property
    def project(self) -> dict[str, Any]:
        """The table `project` of `pyproject.toml`, which parses."""
        project = self.pyproject.get("project", {})
        return project if isinstance(project, dict) else {}

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        """The content of `pyproject.toml`, which parses."""
        return tomllib.loads(self.text("pyproject.toml"))

    @cached_property
    def dockerfile(self) -> Dockerfile:
        """The Dockerfile that is built, which is there."""
        return Dockerfile.parse(self.text(self.dockerfile_name or ""))

    @property
    def dockerfile_name(self) -> str | None:
        """The Dockerfile that is built, relative to the folder."""
        return next((name for name in _DOCKERFILES if self.has(name)), None)

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""
        return (self.folder / name).is_file()

    def text(self, name: str) -> str:
        """Read a file; wrong bytes become question marks."""
        return (self.folder / name).read_text(encoding="utf-8", errors="replace")


def _manifest_exists(package: Package) -> None:
    if not package.has(MANIFEST_NAME):
        raise Fault(
            f"there is no {MANIFEST_NAME}",
            f"write one with spec_version: 1 and name: {package.folder.name}",
        )


def _manifest_valid(package: Package) -> None:
    read = package.manifest_file
    if read.errors:
        why = "; ".join(_at(problem) for problem in read.errors)
        raise Fault(why, "`openenv schema` shows the keys and their values")


def _manifest_keys(package: Package) -> None:
    read = package.manifest_file
    if read.problems:
        why = "; ".join(_at(problem) for problem in read.problems)
        raise Fault(why, "take the key out or mend its spelling", Verdict.WARN)


def _files(package: Package) -> None:
    wanted = ["__init__.py", "client.py", "README.md"]
    if package.manifest_file.manifest is not None:
        module = package.manifest.app.partition(":")[0]
        wanted.append(f"{module.replace('.', '/')}.py")
        if module.startswith("server."):
            wanted.append("server/__init__.py")
    missing = [name for name in wanted if not package.has(name)]
    if missing:
        raise Fault(
            f"missing: {', '.join(missing)}",
            "`openenv init` writes a package that has all of them",
        )


def _pyproject_valid(package: Package) -> None:
    if not package.has("pyproject.toml"):
        raise Fault("there is no pyproject.toml", "write one with a table [project]")
    try:
        content = package.pyproject
    except tomllib.TOMLDecodeError as error:
        raise Fault(f"pyproject.toml is no TOML: {error}", "mend that line") from None
    if not isinstance(content.get("project"), dict):
        raise Fault("pyproject.toml has no table [project]", "add it")
    for key in ("name", "version"):
        if key not in package.project and key not in package.project.get("dynamic", ()):
            raise Fault(f"[project] has no {key}", f'add {key} = "..."')


def _pyproject_openenv(package: Package) -> None:
    if not _OPENENV_NAMES & _requirement_names(package.project):
        raise Fault(
            "the package does not depend on openenv",
            'add "openenv[core]" to [project] dependencies',
        )


def _pyproject_script(package: Package) -> None:
    scripts = package.project.get("scripts", {})
    entry = scripts.get("server") if isinstance(scripts, dict) else None
    if entry is None:
        raise Fault(
            "[project.scripts] has no server, so `uv run server` cannot work",
            f'add server = "{package.folder.name}.server.app:main"',
        )
    module, _, function = str(entry).partition(":")
    path = _module_file(package, module)
    if path is None:
        raise Fault(
            f"the script server is {entry}, but there is no module {module}",
            "name the module that has the function main",
        )
    if not re.search(rf"^(async )?def {re.escape(function)}\(", path, re.MULTILINE):
        raise Fault(
            f"the script server is {entry}, but {module} has no {function}()",
            f"write def {function or 'main'}() -> None, which serves the application",
        )


def _pyproject_packages(package: Package) -> None:
    setuptools = package.pyproject.get("tool", {}).get("setuptools", {})
    listed = setuptools.get("packages") if isinstance(setuptools, dict) else None
    if not isinstance(listed, list):
        raise NotApplicable("setuptools finds the packages by itself")
    name = package.folder.name
    if not package.has("server/__init__.py") or name not in listed:
        return
    if f"{name}.server" not in listed:
        raise Fault(
            f"[tool.setuptools] packages leaves out {name}.server, so an installed "
            "package has no server",
            f'add "{name}.server" to packages and to package-dir',
        )


def _pyproject_imports(package: Package) -> None:
    if "dependencies" in package.project.get("dynamic", ()):
        raise NotApplicable("the dependencies are dynamic")
    try:
        found = undeclared(package.folder, package.project)
    except NotInstalled as missing:
        why = f"{missing} is not installed, so what it brings is unknown"
        raise NotApplicable(why) from None
    if found:
        names = ", ".join(f'"{each}"' for each in sorted({each[3] for each in found}))
        raise Fault(
            "; ".join(
                f"{file}:{line}: imports {module}, which no dependency brings"
                for file, line, module, _ in found
            ),
            f"add {names} to [project] dependencies in pyproject.toml",
        )


def _docker_exists(package: Package) -> None:
    if package.dockerfile_name is None:
        raise Fault(
            "there is no server/Dockerfile and no Dockerfile",
            "`openenv init` writes one that may be copied",
        )
    if not package.dockerfile.of("FROM"):
        raise Fault(
            f"{package.dockerfile_name} has no FROM, so it builds nothing",
            "start from an image, such as FROM python:3.11-slim",
        )


def _docker_command(package: Package) -> None:
    name, command = package.dockerfile_name, package.dockerfile.command()
    if command is None:
        raise Fault(
            f"{name} has no CMD, so a container serves nothing",
            "end it with a CMD that serves the application",
        )
    module, _, attribute = package.manifest.app.partition(":")
    if _module_file(package, module) is None:
        raise NotApplicable(f"needs the module {module}")
    folder = package.folder.name
    served = (f"{module}:{attribute}", module, f"{module.replace('.', '/')}.py")
    by_name = re.search(r"(^|[\s/])(server|openenv serve)(\s|$)", command.text)
    if not any(_names(command.text, each, folder) for each in served) and not by_name:
        raise Fault(
            f"{name}:{command.line}: CMD does not serve the manifest's app "
            f"{package.manifest.app}: {command.text}",
            f'for instance CMD ["python", "-m", "{folder}.{module}", ...]',
        )


def _docker_port(package: Package) -> None:
    command, port = package.dockerfile.command(), package.manifest.port
    told = re.search(r"--port[= ]+(\S+)", command.text if command else "")
    if told is None:
        told = re.search(r"--bind[= ]+\S*:(\d+)", command.text if command else "")
    if told is None or not told.group(1).isdigit() or command is None:
        raise NotApplicable("CMD names no port")
    if int(told.group(1)) != port:
        raise Fault(
            f"{package.dockerfile_name}:{command.line}: CMD serves port "
            f"{told.group(1)}, the manifest says {port}",
            f"write --port {port}, or port: {told.group(1)} in {MANIFEST_NAME}",
        )


def _docker_host(package: Package) -> None:
    command = package.dockerfile.command()
    if command is None or "--host" not in command.text:
        raise NotApplicable("CMD names no host")
    told = re.search(r"--host[= ]+(127\.\S+|localhost|::1)(\s|$)", command.text)
    if told:
        raise Fault(
            f"{package.dockerfile_name}:{command.line}: CMD listens on "
            f"{told.group(1)}, which nobody outside of the container reaches",
            "write --host 0.0.0.0",
        )


def _docker_dependencies(package: Package) -> None:
    runs = " ; ".join(each.text for each in package.dockerfile.of("RUN"))
    whole = re.search(
        r"pip install\b[^;&|]*\s(\.|/app|/app/env)(\[[\w,-]+\])?(\s|$)|uv sync",
        runs,
    )
    if whole:
        return
    installed = _names_in(runs)
    for path in re.findall(r"-r\s+(?:\S*/)?([\w.-]+\.txt)", runs):
        for place in (f"server/{path}", path):
            if package.has(place):
                installed |= _names_of(package.text(place).splitlines())
    missing = sorted(_requirement_names(package.project) - installed)
    if missing:
        raise Fault(
            f"{package.dockerfile_name} does not install {', '.join(missing)}, which "
            "pyproject.toml names",
            "install the package itself: RUN pip install .",
        )


def _docker_classic(package: Package) -> None:
    for run in package.dockerfile.of("RUN"):
        if run.text.startswith("--mount"):
            raise Fault(
                f"{package.dockerfile_name}:{run.line}: RUN --mount needs BuildKit; "
                "the classic builder refuses it",
                "do without the mount",
                Verdict.WARN,
            )


PACKAGE_CHECKS: Final[tuple[Check[Package], ...]] = (
    Check("manifest.exists", _manifest_exists),
    Check("manifest.valid", _manifest_valid, ("manifest.exists",)),
    Check("manifest.keys", _manifest_keys, ("manifest.valid",)),
    Check("package.files", _files, ("manifest.exists",)),
    Check("pyproject.valid", _pyproject_valid, ("manifest.exists",)),
    Check("pyproject.openenv", _pyproject_openenv, ("pyproject.valid",)),
    Check("pyproject.script", _pyproject_script, ("pyproject.valid", "package.files")),
    Check("pyproject.packages", _pyproject_packages, ("pyproject.valid",)),
    Check(
        "pyproject.imports",
        _pyproject_imports,
        ("pyproject.openenv", "package.files"),
    ),
    Check("docker.exists", _docker_exists, ("manifest.exists",)),
    Check("docker.instructions", image.instructions, ("docker.exists",)),
    Check("docker.copy", image.copies, ("docker.exists",)),
    Check("docker.command", _docker_command, ("docker.exists", "manifest.valid")),
    Check("docker.port", _docker_port, ("docker.command",)),
    # One port in two places is one fault.
    Check("docker.expose", image.exposes, ("docker.port",)),
    Check("docker.variables", image.variables, ("docker.command",)),
    Check("docker.host", _docker_host, ("docker.command",)),
    Check(
        "docker.dependencies",
        _docker_dependencies,
        ("docker.exists", "pyproject.valid"),
    ),
    Check("docker.classic", _docker_classic, ("docker.exists",)),
)


def _at(problem: Problem) -> str:
    return f"{MANIFEST_NAME}:{problem.line}:{problem.column}: {problem.message}"


def _module_file(package: Package, module: str) -> str | None:
    """Read the source of a module that is named with or without the package."""
    path = module.removeprefix(f"{package.folder.name}.").replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py"):
        if package.has(name):
            return package.text(name)
    return None


def _names(command: str, module: str, folder: str) -> bool:
    quoted = re.escape(module)
    return bool(
        re.search(rf"(^|[\s/'\"])({re.escape(folder)}\.)?{quoted}($|[\s:'\"])", command)
    )


def _requirement_names(project: dict[str, Any]) -> set[str]:
    dependencies = project.get("dependencies", [])
    return _names_of(dependencies) if isinstance(dependencies, list) else set()


def _names_of(requirements: list[Any]) -> set[str]:
    found = (_REQUIREMENT_NAME.match(str(each)) for each in requirements)
    return {normal(match.group(1)) for match in found if match}


def _names_in(commands: str) -> set[str]:
    words = re.findall(r"[A-Za-z0-9][A-Za-z0-9._-]*", commands)
    return {normal(word) for word in words}
