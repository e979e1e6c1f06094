"""Deprecated name of ``openenv.core``.

Every module below is the module object of ``openenv.core``, under another name, so
that classes are the same whichever way they were imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

from typing_extensions import override

import openenv.core as _core

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_NEW = "openenv.core"
_PREFIX = f"{__name__}."


class _Alias(Loader):
    """Gives an existing module in place of a new one."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: ModuleSpec | None = None

    @override
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    @override
    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the alias's spec onto the module.
        module.__spec__ = self._spec


class _AliasFinder(MetaPathFinder):
    """Finds ``openenv_core.x`` where ``openenv.core.x`` is."""

    @override
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        name = f"{_NEW}.{fullname.removeprefix(_PREFIX)}"
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            return None
        if spec is None:
            return None
        is_package = spec.submodule_search_locations is not None
        return ModuleSpec(fullname, _Alias(name), is_package=is_package)


warnings.warn(
    "openenv_core is deprecated; import from openenv.core instead",
    DeprecationWarning,
    stacklevel=2,
)
sys.meta_path.insert(0, _AliasFinder())

__all__ = list(_core.__all__)


def __getattr__(name: str) -> object:
    return getattr(_core, name)


def __dir__() -> list[str]:
    return dir(_core)
