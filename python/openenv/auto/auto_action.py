"""The actions' class of an environment, by name (upstream: auto/auto_action.py)."""

from __future__ import annotations

from typing import Any

from openenv.auto._discovery import find, installed
from openenv.auto._hub import ensure_installed, is_hub_name, repo_id
from openenv.core.generic_client import GenericAction

__all__ = ["AutoAction"]


class AutoAction:
    """Find the class of an environment's actions; nothing is made of this class itself.

    Example:
        >>> AutoAction.from_env("grid-world", skip_install=True)(direction="up")
        GenericAction(direction='up')
    """

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        # upstream: auto/auto_action.py words it so
        raise TypeError(
            "AutoAction is a factory class and should not be instantiated directly. "
            "Use AutoAction.from_hub() or AutoAction.from_env() instead."
        )

    @classmethod
    def from_env(
        cls,
        name: str,
        skip_install: bool = False,
    ) -> type[Any]:
        """Import the class of an environment's actions.

        Args:
            name: As for `AutoEnv.from_env`; a Space's package is installed as there,
                which a person or ``OPENENV_TRUST_REMOTE_CODE=1`` must allow.
            skip_install: Neither install nor import: `GenericAction`, for a
                `GenericEnvClient`.

        Raises:
            ValueError: No such environment, or its installation was refused or failed.
            ImportError: Its package cannot be imported, or has no such class.
        """
        if skip_install:
            return GenericAction
        if is_hub_name(name):
            info = ensure_installed(repo_id(name), trusted=False)
        else:
            info = find(name)
        return info.get_action_class()

    @classmethod
    def from_hub(
        cls,
        env_name: str,
        skip_install: bool = False,
    ) -> type[Any]:
        """Do what `from_env` does, under another name."""
        return cls.from_env(env_name, skip_install)

    @classmethod
    def get_action_info(cls, name: str) -> dict[str, Any]:
        """Tell the names of an installed environment's classes, without importing it.

        Raises:
            ValueError: There is no such environment.
        """
        info = find(name)
        return {
            "env_key": info.env_key,
            "env_name": info.name,
            "package": info.package_name,
            "action_class": info.action_class_name,
            "observation_class": info.observation_class_name,
            "module": info.client_module_path,
        }

    @classmethod
    def list_actions(cls) -> None:
        """Print the installed environments with their classes of actions."""
        environments = installed()
        if not environments:
            print("No OpenEnv environments found.")  # noqa: T201 - it is to print
        for key, info in environments.items():
            print(f"{key}  {info.action_class_name}")  # noqa: T201
