"""A container provider without containers: its images are folders of this checkout."""

from __future__ import annotations

from tests.support.processes import ROOT

from openenv.core.containers.runtime import ProcessProvider

GRID_WORLD = ROOT / "envs" / "grid_world_env"


class Folder:
    """Serves grid_world_env whatever the image, and takes notes."""

    def __init__(self, failing=None):
        self.failing = failing
        self.log = []
        self._process = ProcessProvider(GRID_WORLD)

    def start_container(self, image, port=None, env_vars=None, **options):
        self.log.append(("start", image, env_vars, options))
        return self._process.start(port=port, env_vars=env_vars)

    def wait_for_ready(self, _base_url, timeout_s=30.0):
        self.log.append(("wait", timeout_s))
        if self.failing is not None:
            raise self.failing
        self._process.wait_for_ready(60)

    def stop_container(self):
        self.log.append(("stop",))
        self._process.stop()
