"""Images for tests, made of this machine's Python; no registry is asked.

`openenv-test-base` is the running interpreter with its standard library, the shared
libraries they need and the packages that a server needs. `openenv-test-env` is this
checkout's `openenv` and `envs/grid_world_env` on top. Both are tagged by their content,
built once and used again; older ones are removed.

    python -m tests.images.build        # prints both tags
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import py_compile
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import docker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import openenv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from docker import DockerClient

ROOT = Path(__file__).resolve().parents[2]
BASE, ENVIRONMENT = "openenv-test-base", "openenv-test-env"
SITE_PACKAGES = "/packages"
_SERVER_PACKAGES = [
    "fastapi",
    "httptools",
    "msgspec",
    "pydantic",
    "typing_extensions",
    "uvicorn",
    "uvloop",
    "websockets",
]
_FORMAT = b"with bytecode"
_UNUSED = {"test", "tests", "idlelib", "tkinter", "ensurepip", "site-packages"}
_HEAVY = re.compile(r"\.opt-\d\.pyc$|\.a$")
_TOOLS = ["/bin/sh", "/bin/cat", "/bin/true", "/bin/sleep"]


def base_image(client: DockerClient) -> str:
    """Build the base image unless it is there, and return its tag."""
    files = dict(_base_files())
    tag = _tag(BASE, files)
    if not client.images.list(tag):
        client.api.import_image_from_data(
            _tar({**_libraries(files), **files, **_bytecode(files)}),
            repository=BASE,
            tag=tag.partition(":")[2],
            changes=[
                f"ENV PYTHONPATH={SITE_PACKAGES}:/app PYTHONUNBUFFERED=1",
                f"ENV PATH={Path(sys.base_prefix) / 'bin'}:/bin",
            ],
        )
        _remove_others(client, tag)
    return tag


def environment_image(client: DockerClient) -> str:
    """Build the image of the grid world unless it is there, and return its tag."""
    base = base_image(client)
    files = {
        **_tree(Path(openenv.__file__).parent, "app/openenv"),
        **_tree(ROOT / "envs/grid_world_env", "app/grid_world_env"),
        "app/env/openenv.yaml": ROOT / "envs/grid_world_env/openenv.yaml",
        "Dockerfile": _dockerfile(base).encode(),
    }
    tag = _tag(ENVIRONMENT, files)
    if not client.images.list(tag):
        _build(client, {**files, **_bytecode(files)}, tag)
        _remove_others(client, tag)
    return tag


def derived_image(client: DockerClient, tag: str, *instructions: str) -> str:
    """Build an image on the environment's that differs by a few instructions."""
    lines = (f"FROM {environment_image(client)}", *instructions)
    _build(client, {"Dockerfile": "\n".join(lines).encode()}, tag)
    return tag


def small_image(client: DockerClient, tag: str, *instructions: str) -> str:
    """Import an image that can only sleep, and has a manifest with port 7861."""
    files: dict[str, Path | bytes] = {
        "/bin/sleep": Path("/bin/sleep"),
        "/app/env/openenv.yaml": b"name: other\nport: 7861\n",
    }
    repository, _, version = tag.partition(":")
    client.api.import_image_from_data(
        _tar({**_libraries(files), **files}),
        repository=repository,
        tag=version,
        changes=['CMD ["/bin/sleep", "600"]', *instructions],
    )
    return tag


def _dockerfile(base: str) -> str:
    serve = "from grid_world_env.server.app import main; main('0.0.0.0', 8000)"
    return f"""\
FROM {base}
COPY app /app
WORKDIR /app/env
EXPOSE 8000
CMD ["python3", "-c", "{serve}"]
"""


def _base_files() -> Iterator[tuple[str, Path | bytes]]:
    prefix = Path(sys.base_prefix)
    interpreter = Path(sys.executable).resolve()
    library = Path(subprocess.__file__).parent
    yield f"{prefix}/bin/python3", interpreter
    yield from _tree(library, str(library)).items()
    yield from packages(_SERVER_PACKAGES).items()
    for tool in _TOOLS:
        yield tool, Path(tool).resolve()
    yield "/tmp/.keep", b""


def packages(names: Iterable[str]) -> dict[str, Path | bytes]:
    """The files of installed packages and of all that they need."""
    found: dict[str, Path | bytes] = {}
    for name in sorted(distributions(names)):
        for file in metadata.distribution(name).files or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and path.is_file() and "tests" not in file.parts:
                found[f"{SITE_PACKAGES}/{file}"] = path
    return found


def distributions(names: Iterable[str]) -> set[str]:
    """All packages that some need on this system, by their distributions' names."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        asked = waiting.pop()
        if str(asked) in seen:
            continue
        seen.add(str(asked))
        try:
            needed = metadata.requires(asked.name) or ()
        except metadata.PackageNotFoundError:
            continue
        found.add(canonicalize_name(asked.name))
        waiting += [each for each in map(Requirement, needed) if _holds(each, asked)]
    return found


def _holds(needed: Requirement, asked: Requirement) -> bool:
    """Whether a package needs another with the extras that were asked for."""
    marker = needed.marker
    return marker is None or any(
        marker.evaluate({"extra": extra}) for extra in ("", *asked.extras)
    )


def _tree(folder: Path, inside: str) -> dict[str, Path | bytes]:
    return {
        f"{inside}/{path.relative_to(folder)}": path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not _UNUSED & set(path.relative_to(folder).parts[:-1])
        and not _HEAVY.search(path.name)
    }


def _bytecode(files: dict[str, Path | bytes]) -> dict[str, Path | bytes]:
    """Compile the modules that are not; else each container does it at its start."""
    compiled: dict[str, Path | bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "compiled")
        for inside, content in files.items():
            cache = importlib.util.cache_from_source(inside)
            if isinstance(content, bytes) or content.suffix != ".py" or cache in files:
                continue
            with contextlib.suppress(py_compile.PyCompileError):  # a template's
                py_compile.compile(
                    str(content),
                    str(target),
                    inside,
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
                compiled[cache] = target.read_bytes()
    return compiled


def _tag(name: str, files: dict[str, Path | bytes]) -> str:
    digest = hashlib.sha256(_FORMAT)
    for inside, content in sorted(files.items(), key=lambda item: item[0]):
        digest.update(inside.encode())
        if isinstance(content, bytes):
            digest.update(content)
        elif "__pycache__" not in inside:
            status = content.stat()
            digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    return f"{name}:{digest.hexdigest()[:16]}"


def _tar(files: dict[str, Path | bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        for inside, content in files.items():
            if isinstance(content, bytes):
                entry = tarfile.TarInfo(inside)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            else:
                tar.add(content, inside, recursive=False)
    return buffer.getvalue()


def _libraries(files: dict[str, Path | bytes]) -> dict[str, Path | bytes]:
    """What `ldd` says that programs and extensions load, under the same paths."""
    binaries = [
        str(path)
        for inside, path in files.items()
        if isinstance(path, Path) and (".so" in path.name or "/bin/" in inside)
    ]
    if not binaries:
        return {}
    told = subprocess.run(
        ["ldd", *binaries], capture_output=True, text=True, check=False
    ).stdout
    found = set(re.findall(r"(?:=> |^\s+)(/\S+) \(", told, re.MULTILINE))
    bundled = {str(path) for path in files.values()}
    return {os.path.normpath(path): Path(path) for path in sorted(found - bundled)}


def _build(client: DockerClient, files: dict[str, Path | bytes], tag: str) -> None:
    context = io.BytesIO(_tar(files))
    client.images.build(
        fileobj=context, custom_context=True, tag=tag, rm=True, forcerm=True
    )


def _remove_others(client: DockerClient, tag: str) -> None:
    for image in client.images.list(tag.partition(":")[0]):
        for other in image.tags:
            if other != tag:
                client.images.remove(other, force=True)


if __name__ == "__main__":
    engine = docker.from_env()
    print(base_image(engine), environment_image(engine))  # noqa: T201
