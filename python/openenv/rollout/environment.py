"""Find an environment's folder and read its manifest `openenv.yaml`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import reprlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openenv.rollout.errors import InvalidRollout

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST_NAME = "openenv.yaml"
DEFAULT_APP = "server.app:app"
_MODULE_AND_ATTRIBUTE = re.compile(r"[\w.]+:[\w.]+")


@dataclass(frozen=True, slots=True)
class EnvironmentFolder:
    """An environment on this machine: its folder, its name, its application.

    `app` is `module:attribute`, importable with the folder on the path.
    """

    folder: Path
    name: str
    app: str


def find_environment(name: str) -> EnvironmentFolder:
    """Find an environment by path or by name.

    Args:
        name: a folder with `openenv.yaml`; or a bare name, looked up as `./envs/NAME`,
            then `./NAME`, then as an installed package. `grid-world` and `grid_world`
            find `grid_world_env` too.

    Raises:
        InvalidRollout: there is none, or its manifest cannot be used.
    """
    searched = list(_candidates(name))
    for folder in searched:
        if (folder / MANIFEST_NAME).is_file():
            return _read_manifest(folder.resolve())
    places = ", ".join(str(folder) for folder in searched)
    reason = f"no {MANIFEST_NAME} in {places}"
    if _MODULE_AND_ATTRIBUTE.fullmatch(name):
        reason = (
            f"give a folder with {MANIFEST_NAME}, or the name of one (./envs/NAME, "
            "./NAME, an installed package), not module:attribute; an application alone "
            f"is served by `uvicorn {name}`"
        )
    message = f"no environment {name!r}: {reason}"
    raise InvalidRollout(message)


def load_application(environment: EnvironmentFolder) -> Any:  # noqa: ANN401 - an ASGI app of any framework
    """Import the environment's ASGI application into this process.

    The folder is put on the path first, as its manifest's `app` expects; its parent is
    put last where the folder is a package, so that it can import itself by name.

    Raises:
        Exception: whatever importing the environment's code raises.
        InvalidRollout: the manifest names what is not there, or no application.
    """
    folder = environment.folder
    sys.path.insert(0, str(folder))
    if (folder / "__init__.py").is_file():
        sys.path.append(str(folder.parent))
    module_name, _, attribute = environment.app.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Any other missing module is one that the environment's own code imports.
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise _wrong_application(
            environment, f"there is no module {error.name}"
        ) from None
    application = getattr(module, attribute, None)
    if not callable(application):
        raise _wrong_application(
            environment, f"that module has no application {attribute!r}"
        )
    return application


def _wrong_application(environment: EnvironmentFolder, found: str) -> InvalidRollout:
    manifest = environment.folder / MANIFEST_NAME
    return InvalidRollout(f"app in {manifest} is {environment.app}, but {found}")


def _candidates(name: str) -> Iterator[Path]:
    path = Path(name).expanduser()
    if path.is_absolute() or len(path.parts) != 1 or name in (".", ".."):
        yield path
        return
    module = name.replace("-", "_")
    names = dict.fromkeys((name, module, f"{module.removesuffix('_env')}_env"))
    for each in names:
        yield Path("envs") / each
        yield Path(each)
    for each in names:
        yield from _installed(each)


def _installed(name: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place)


def _read_manifest(folder: Path) -> EnvironmentFolder:
    # Here, because PyYAML belongs to the extra «cli» and --base-url needs no manifest.
    try:
        import yaml  # noqa: PLC0415
    except ModuleNotFoundError:
        message = "reading openenv.yaml needs PyYAML: pip install 'openenv[cli]'"
        raise InvalidRollout(message) from None
    path = folder / MANIFEST_NAME
    try:
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        message = f"{place}: no YAML: {error.problem}"
        raise InvalidRollout(message) from None
    except RecursionError:
        message = f"cannot read {path}: it is nested too deeply"
        raise InvalidRollout(message) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        message = f"cannot read {path}: {error}"
        raise InvalidRollout(message) from None
    if not isinstance(manifest, dict):
        message = f"{path} must be a mapping"
        raise InvalidRollout(message)
    app = manifest.get("app") or DEFAULT_APP
    if not (isinstance(app, str) and app.count(":") == 1):
        message = f"app in {path} must be module:attribute, got {reprlib.repr(app)}"
        raise InvalidRollout(message)
    name = manifest.get("name")
    return EnvironmentFolder(
        folder, name if isinstance(name, str) else folder.name, app
    )
