"""Environments by name: the client of an installed package, a Space or an image.

Names are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv.core._faces import lazy_getattr

if TYPE_CHECKING:
    from openenv.auto.auto_action import AutoAction as AutoAction
    from openenv.auto.auto_env import AutoEnv as AutoEnv

__all__ = ["AutoEnv", "AutoAction"]  # noqa: RUF022 - upstream's order

_HERE = "openenv.auto"
_MODULES: dict[str, tuple[str, ...]] = {
    f"{_HERE}.auto_action": ("AutoAction",),
    f"{_HERE}.auto_env": ("AutoEnv",),
}

if not TYPE_CHECKING:  # a checker shall find a wrong name
    __getattr__ = lazy_getattr(__name__, _MODULES, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
