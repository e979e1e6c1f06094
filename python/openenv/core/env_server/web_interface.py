"""What a page about an environment shows (upstream: core/env_server/web_interface.py).

The page itself is not served yet; its metadata is loaded here.
"""

# ruff: noqa: ANN401 - environments of any class

from __future__ import annotations

import inspect
import logging
from functools import partial
from pathlib import Path
from typing import Any, Final

from openenv.core.env_server._config import read_readme_path
from openenv.core.env_server.types import EnvironmentMetadata

__all__ = ["load_environment_metadata"]

_IN_IMAGES: Final = (Path("/app/env/README.md"), Path("/app/README.md"))
_log = logging.getLogger(__name__)


def load_environment_metadata(
    env: Any, env_name: str | None = None
) -> EnvironmentMetadata:
    """Describe an environment, with the README that lies beside it.

    Args:
        env: An environment, which describes itself; or its class or factory, which is
            not called.
        env_name: Its name, for a class or factory; by default that one's own.

    Returns:
        What is known. The README is the first that exists of ``ENV_README_PATH``,
        ``envs/<env_name>/README.md`` below the working directory, and those of images,
        ``/app/env/README.md`` and ``/app/README.md``.
    """
    if not _is_factory(env) and hasattr(env, "get_metadata"):
        described = EnvironmentMetadata.model_validate(env.get_metadata())
        if described.readme_content is not None:
            return described
        readme = _readme(env_name or described.name)
        return described.model_copy(update={"readme_content": readme})
    name = env_name or _name(env)
    return EnvironmentMetadata(
        name=name,
        description=f"{name} environment",
        version="1.0.0",
        readme_content=_readme(name),
    )


def _is_factory(env: Any) -> bool:
    return inspect.isclass(env) or inspect.isroutine(env) or isinstance(env, partial)


def _name(env: Any) -> str:
    while isinstance(env, partial):
        env = env.func
    return getattr(env, "__name__", None) or type(env).__name__


def _readme(name: str) -> str | None:
    asked = read_readme_path()
    beside = Path("envs", name, "README.md")
    for place in (*([Path(asked)] if asked else []), beside, *_IN_IMAGES):
        try:
            return place.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            _log.warning("%s cannot be read: %s", place, error)
    return None
