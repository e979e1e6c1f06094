"""An image to build on without a network: the tests' base with a pip that copies.

The templates' Dockerfiles call `pip install` and `useradd`. Here the packages that a
server needs are in the base already, so this pip puts a wheel's or a folder's own files
beside them, and fails for anything else.
"""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import openenv

PYTHON = f"{sys.base_prefix}/bin/python3"

PIP = f"""#!{PYTHON}
import pathlib, shutil, sys, tomllib, zipfile
what, target = sys.argv[-1], pathlib.Path("/packages")
if what == ".":
    setup = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
    for name, folder in setup["tool"]["setuptools"]["package-dir"].items():
        place = target.joinpath(*name.split("."))
        place.mkdir(parents=True, exist_ok=True)
        for file in pathlib.Path(folder).glob("*.*"):
            if file.is_file():
                shutil.copy(file, place)
elif "@ file://" in what:
    zipfile.ZipFile(what.partition("@ file://")[2]).extractall(target)
else:
    sys.exit(f"no network to install {{what}} from")
"""

USERADD = f"""#!{PYTHON}
import pathlib, sys
pathlib.Path("/etc").mkdir(exist_ok=True)
with open("/etc/passwd", "a") as users:
    users.write(f"{{sys.argv[-1]}}:x:1000:1000::/:/bin/sh\\n")
"""

DOCKERFILE = f"""\
FROM {{base}}
COPY pip useradd python /bin/
COPY more /
ENV PATH=/bin:{sys.base_prefix}/bin
"""


def build_base(client, base, tag, more=None):
    """Build the base image that the tests' packages are built on.

    `more` are further files of it, paths in the image and on this machine.
    """
    files = {
        "Dockerfile": DOCKERFILE.format(base=base),
        "pip": PIP,
        "useradd": USERADD,
        "python": f'#!/bin/sh\nexec {PYTHON} "$@"\n',
    }
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
        tar.addfile(_folder("more"))
        for inside, path in (more or {}).items():
            tar.add(path, f"more{inside}", recursive=False)
    archive.seek(0)
    client.images.build(fileobj=archive, custom_context=True, tag=tag, rm=True)


def _folder(name):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    return entry


def sleep_instead(folder, base):
    """Let a package's image be built in one step, and do nothing."""
    dockerfile = folder / "server" / "Dockerfile"
    dockerfile.write_text(f'FROM {base}\nCMD ["/bin/sleep", "600"]\n')


def make_wheel(folder):
    """Pack this checkout's openenv as a wheel is packed; any installer takes it."""
    tag = f"cp3{sys.version_info.minor}"
    installed = metadata.distribution("openenv")
    label = f"openenv-{installed.version}"
    wheel = folder / f"{label}-{tag}-{tag}-linux_x86_64.whl"
    root = Path(openenv.__file__).parent
    files = {
        f"openenv/{path.relative_to(root)}": path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for name in ("METADATA", "WHEEL", "entry_points.txt"):
        files[f"{label}.dist-info/{name}"] = (installed.read_text(name) or "").encode()
    record = f"{label}.dist-info/RECORD"
    lines = [f"{name},{_hash(files[name])},{len(files[name])}\n" for name in files]
    files[record] = ("".join(lines) + f"{record},,\n").encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def _hash(content):
    digest = hashlib.sha256(content).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
