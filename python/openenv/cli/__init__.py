"""The command `openenv`; it needs the extra `cli` (typer, rich, PyYAML)."""
