"""A process that owns a container: `python -m tests.integration.providers.owner IMAGE`.

It starts a container, prints its name, and ends as the second argument says: `exit`,
`raise`, `wait` or `fork`, which is two that wait.
"""

from __future__ import annotations

import json
import os
import sys

from openenv.core.containers.runtime import LocalDockerProvider


def main() -> None:
    image, how, command = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    provider = LocalDockerProvider(image, command=command)
    provider.start_container()
    sys.stdout.write(f"STARTED {provider._container_name}\n")
    sys.stdout.flush()
    if how == "fork":
        os.fork()
    if how == "raise":
        raise RuntimeError(how)
    if how in {"fork", "wait"}:
        sys.stdin.read()


if __name__ == "__main__":
    main()
