"""Where environments run: see `openenv.core.containers.runtime`."""
