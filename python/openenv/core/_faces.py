"""Lazy faces (PEP 562): names of a package that are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_getattr(
    package: str, modules: Mapping[str, tuple[str, ...]], scope: dict[str, object]
) -> Callable[[str], object]:
    """Make the ``__getattr__`` of a package.

    Args:
        package: its name.
        modules: module name to the names it gives.
        scope: the package's ``globals()``; values are kept there once imported.
    """
    home = {name: module for module, names in modules.items() for name in names}

    def getattr_(name: str) -> object:
        module = home.get(name)
        if module is None:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        value: object = getattr(import_module(module), name)
        scope[name] = value
        return value

    return getattr_
