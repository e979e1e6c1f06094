"""What drives the connections and the JSON of this process: Rust, or plain Python.

``native`` is the extension ``openenv._rust``. Where that cannot be loaded, or with
``OPENENV_PURE_PYTHON=1``, it is ``openenv.core._baseline``, which has the same names.
The choice is made once, when this module is imported; nobody else imports either.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

__all__ = ["native"]

if TYPE_CHECKING:
    from types import ModuleType

    from openenv import _rust as native


def _chosen() -> ModuleType:
    """Return the module to use.

    Raises:
        ImportError: Neither can be loaded.
    """
    if os.getenv("OPENENV_PURE_PYTHON") == "1":
        return _baseline("was switched off by OPENENV_PURE_PYTHON=1")
    try:
        from openenv import _rust  # noqa: PLC0415 - may be missing
    except ImportError as exc:
        return _baseline(f"cannot be loaded ({exc})")
    return _rust


def _baseline(why: str) -> ModuleType:
    try:
        from openenv.core import _baseline  # noqa: PLC0415 - loads what Rust needs not
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] != "websockets":
            raise
        msg = (
            f"the extension openenv._rust {why}, and what stands in for it needs "
            "websockets: pip install 'openenv[pure]'"
        )
        raise ImportError(msg, name=exc.name) from exc
    return _baseline


if not TYPE_CHECKING:
    native = _chosen()
