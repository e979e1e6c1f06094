"""Say which extra is missing when a server module is imported without it."""

from __future__ import annotations

from importlib import import_module

_CORE_PACKAGES = frozenset({"fastapi", "starlette", "uvicorn", "httptools"})


def require_core(package: str = "fastapi") -> None:
    """Import a package of the extra ``core``.

    Raises:
        ModuleNotFoundError: it is not installed; names the extra to install.
    """
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error


def missing_extra(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Turn "no module named fastapi" into advice; other errors stay as they are."""
    package = (error.name or "").partition(".")[0]
    if package not in _CORE_PACKAGES:
        return error
    message = (
        f"the OpenEnv server needs {package!r}, which is not installed; "
        "install the extra: pip install 'openenv[core]'"
    )
    return ModuleNotFoundError(message, name=error.name)
