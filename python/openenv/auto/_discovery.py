"""The environments that are installed here, told by the metadata of their packages.

An environment is a distribution whose import package holds ``openenv.yaml``. Nothing is
imported to find it, and nothing is kept: a cache could be stale or somebody else's, and
would say which module to import.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from openenv.auto._environment_info import EnvironmentInfo, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGER: Final = logging.getLogger("openenv.auto")
_MANIFEST: Final = "openenv.yaml"
_IN_RECORD: Final = re.compile(rf'^"?(\w+)/{re.escape(_MANIFEST)}"?,', re.MULTILINE)
_PREFIX: Final = "openenv-"
_NOT_IN_NAMES: Final = re.compile(r"[-_.]+")
_SUGGESTIONS: Final = 3
_LIKENESS: Final = 0.6


def installed() -> dict[str, EnvironmentInfo]:
    """Return the installed environments by key, such as ``grid_world``.

    Of two with the same key the first on ``sys.path`` counts, as it does for imports.
    """
    found: dict[str, EnvironmentInfo] = {}
    for distribution in metadata.distributions():
        for module, manifest in _manifests(distribution):
            info = _described(distribution, module, manifest)
            if info is not None:
                found.setdefault(info.env_key, info)
    return dict(sorted(found.items()))


def find(name: str) -> EnvironmentInfo:
    """Find an installed environment: ``echo``, ``echo-env`` and ``echo_env`` are one.

    Raises:
        ValueError: There is none; names those that are like it.
    """
    environments = installed()
    if not environments:
        # upstream: auto/auto_env.py begins so
        raise ValueError(
            "No OpenEnv environments found.\nAn environment is an installed package "
            "with openenv.yaml; a Space of the Hugging Face Hub is named owner/name."
        )
    info = environments.get(key_of(name))
    if info is None:
        raise ValueError(_unknown(name, list(environments)))
    return info


def _unknown(name: str, keys: list[str]) -> str:
    lines = [f"Unknown environment {name!r}."]
    near = get_close_matches(key_of(name), keys, _SUGGESTIONS, _LIKENESS)
    if near:
        lines.append(f"Did you mean: {', '.join(near)}?")
    lines.append(f"Available environments: {', '.join(keys)}")
    return "\n".join(lines)


def _manifests(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the import packages of a distribution that hold a manifest, and that."""
    recorded = _IN_RECORD.findall(distribution.read_text("RECORD") or "")
    for module in recorded:
        yield module, Path(str(distribution.locate_file(f"{module}/{_MANIFEST}")))
    origin = {} if recorded else _origin(distribution)
    if origin.get("dir_info"):  # an editable one records none of its sources
        yield from _editable(distribution)


def _editable(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    name = _NOT_IN_NAMES.sub("-", _name(distribution)).lower()
    if not name.startswith(_PREFIX):
        return
    module = name.removeprefix(_PREFIX).replace("-", "_")
    spec = importlib.util.find_spec(module) if module.isidentifier() else None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        manifest = Path(folder) / _MANIFEST
        if manifest.is_file():
            yield module, manifest
            return


def _described(
    distribution: metadata.Distribution, module: str, path: Path
) -> EnvironmentInfo | None:
    package = _name(distribution)
    manifest = _read(path) if package else None
    if manifest is None:
        return None
    key = key_of(_text(manifest, "name") or module)
    summaries = distribution.metadata.get_all("Summary") or [""]
    words = "".join(part.capitalize() for part in key.split("_"))
    return EnvironmentInfo(
        env_key=key,
        name=f"{key}_env",
        package_name=package,
        version=distribution.version,
        description=_text(manifest, "description") or summaries[0],
        client_module_path=f"{module}.client",
        client_class_name=f"{words}Env",
        action_class_name=_text(manifest, "action") or f"{words}Action",
        observation_class_name=_text(manifest, "observation") or f"{words}Observation",
        default_image=f"{key.replace('_', '-')}-env:latest",
        spec_version=manifest.get("spec_version"),
        manifest=manifest,
        source_url=_text(_origin(distribution), "url"),
    )


def _read(path: Path) -> dict[str, Any] | None:
    # Here, because PyYAML belongs to extras.
    try:
        import yaml  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"reading {_MANIFEST} needs PyYAML: pip install 'openenv[core]'"
        raise ModuleNotFoundError(message, name=error.name) from None
    try:
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, UnicodeDecodeError, yaml.YAMLError) as error:
        _LOGGER.warning("%s is left out, it cannot be read: %s", path, error)
        return None
    if not isinstance(manifest, dict):
        _LOGGER.warning("%s is left out, it is no mapping", path)
        return None
    return manifest


def _text(manifest: dict[str, Any], key: str) -> str | None:
    value = manifest.get(key)
    return value if isinstance(value, str) and value else None


def _name(distribution: metadata.Distribution) -> str:
    # Without one is what an interrupted removal leaves.
    names = distribution.metadata.get_all("Name")
    return str(names[0]) if names else ""


def _origin(distribution: metadata.Distribution) -> dict[str, Any]:
    """Return where it was installed from, if not from an index (PEP 610)."""
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return origin if isinstance(origin, dict) else {}
