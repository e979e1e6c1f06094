"""OpenEnv: agents reach execution environments over one WebSocket.

Importing this package loads neither the extension nor a web framework; names are
imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib import metadata as metadata

    from openenv import cli as cli, core as core
    from openenv.auto import AutoAction as AutoAction, AutoEnv as AutoEnv
    from openenv.core.generic_client import (
        GenericAction as GenericAction,
        GenericEnvClient as GenericEnvClient,
    )
    from openenv.core.sync_client import SyncEnvClient as SyncEnvClient

    __version__: str

__all__ = [  # noqa: RUF022 - upstream's order
    "core",
    "cli",
    "AutoEnv",
    "AutoAction",
    "GenericEnvClient",
    "GenericAction",
    "SyncEnvClient",
]

_SUBPACKAGES = frozenset({"cli", "core"})
_AUTO = frozenset({"AutoAction", "AutoEnv"})


def _load_package_version() -> str:
    """Return the installed version, also under the distribution's former name."""
    # This module's, as upstream's tests replace it.
    from openenv import metadata  # noqa: PLC0415

    for distribution in ("openenv", "openenv-core"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "0.0.0"


if not TYPE_CHECKING:  # a checker shall find a wrong name

    def __getattr__(name: str) -> object:
        if name == "metadata":  # it takes longer to import than all else here
            return globals().setdefault(name, import_module("importlib.metadata"))
        if name == "__version__":
            return globals().setdefault(name, _load_package_version())
        if name in _SUBPACKAGES:
            return import_module(f"openenv.{name}")
        if name not in __all__:
            message = f"module 'openenv' has no attribute {name!r}"
            raise AttributeError(message)
        home = "openenv.auto" if name in _AUTO else "openenv.core"
        value: object = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
