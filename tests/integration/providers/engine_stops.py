"""The engine stops in mid-run, and comes back.

    unshare --net --mount python -m tests.integration.providers.engine_stops FOLDER

An engine of its own, so that no other's containers end: in namespaces of its own,
because a second engine takes the first one's bridge away. Containers use the host's
network, which is this namespace's, and read the host's Python.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import docker
import docker.errors
import requests
from tests.support.processes import wait_until

from openenv.core.containers.runtime import LocalDockerProvider, find_strays
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ProviderError

PORT = 8000
SERVE = f"from grid_world_env.server.app import main; main('127.0.0.1', {PORT})"


class Engine:
    """A second Docker engine in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/docker.sock"
        (folder / "config.json").write_text("{}")
        self.driver = docker.from_env().info()["Driver"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        places = {
            "config-file": "config.json",
            "data-root": "data",
            "exec-root": "run",
            "pidfile": "pid",
        }
        options = [f"--{name}={self.folder / place}" for name, place in places.items()]
        options += [f"--host={self.url}", f"--storage-driver={self.driver}"]
        options += ["--bridge=none", "--iptables=false", "--ip-forward=false"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(["dockerd", *options], stderr=log)
        wait_until(self._answers, 30, (self.folder / "log").read_text)

    def stop(self) -> None:
        """Stop it, and its containers with it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    def _answers(self) -> bool:
        client = docker.DockerClient(base_url=self.url, version="1.41")
        with contextlib.closing(client):
            try:
                return bool(client.ping())
            except (docker.errors.DockerException, requests.RequestException):
                return False


def import_image(client: docker.DockerClient) -> str:
    """Import an image without files: all that it runs is the host's."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("tmp")
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    told = client.api.import_image_from_data(buffer.getvalue(), repository="empty")
    return str(json.loads(told.splitlines()[-1])["status"])


def main() -> None:
    """Go through it; the last line of output is DONE."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    engine = Engine(Path(sys.argv[1]))
    engine.start()
    try:
        os.environ["DOCKER_HOST"] = engine.url  # noqa: TID251 - for the SDK
        with contextlib.closing(docker.from_env()) as client:
            image = import_image(client)
        run(engine, image)
        assert [] == find_strays()
        with contextlib.closing(docker.from_env()) as client:
            assert [] == client.containers.list(all=True)
    finally:
        engine.stop()
    sys.stdout.write("DONE\n")


def run(engine: Engine, image: str) -> None:
    """Lose the engine in mid-episode, fail to close, and go on when it is back."""
    folders = {"/lib", "/lib64", "/usr", sys.base_prefix, sys.prefix, str(Path.cwd())}
    path = os.pathsep.join(filter(None, sys.path))
    provider = LocalDockerProvider(
        image,
        {"PYTHONPATH": path},
        network="host",
        container_port=PORT,
        command=[sys.executable, "-c", SERVE],
        volumes=[f"{folder}:{folder}:ro" for folder in sorted(folders)],
    )
    env = GenericEnvClient(provider=provider).sync()
    env.reset(seed=1)
    engine.stop()
    try:
        env.step({"direction": "up"})
    except (ConnectionError, RuntimeError):
        pass
    else:
        raise AssertionError("a step without a server")
    closing_at = time.monotonic()
    try:
        env.close()
    except ProviderError:
        assert time.monotonic() - closing_at < 5
    else:
        raise AssertionError("a container was removed without an engine")
    engine.start()
    # The container that could not be removed is, before another one starts.
    assert not env.reset(seed=2).done
    env.close()


if __name__ == "__main__":
    main()
