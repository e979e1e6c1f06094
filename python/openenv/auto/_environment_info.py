"""What is known of one installed environment, and the classes of its package."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from openenv.core._client.type_arguments import type_arguments
from openenv.core.env_client import EnvClient
from openenv.core.mcp_client import MCPClientBase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@dataclass(frozen=True, slots=True)
class EnvironmentInfo:
    """Describe an installed environment; its package is imported for a class only.

    The names of classes follow from the environment's name, unless its manifest says
    ``action`` and ``observation``.
    """

    env_key: str
    name: str
    package_name: str
    version: str
    description: str
    client_module_path: str
    client_class_name: str
    action_class_name: str
    observation_class_name: str
    default_image: str
    spec_version: int | str | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    source_url: str | None = None

    def get_client_class(self) -> type[EnvClient[Any, Any, Any]]:
        """Import the client's class: that of its name, or the package's only one.

        Raises:
            ImportError: The package cannot be imported, or has no such class.
        """
        module = import_module(self.client_module_path)
        named = getattr(module, self.client_class_name, None)
        if isinstance(named, type) and issubclass(named, EnvClient):
            return named
        own = [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, EnvClient)
            and value.__module__ == module.__name__
        ]
        if len(own) != 1:
            raise self._missing(self.client_class_name)
        return own[0]

    def get_action_class(self) -> type[Any]:
        """Import the class of actions, or take that which the client's class names.

        Raises:
            ImportError: As `get_client_class`.
        """
        found = self._exported(self.action_class_name)
        if found is None:
            found = _action_of(self.get_client_class())
        if found is None:
            raise self._missing(self.action_class_name)
        return found

    def get_observation_class(self) -> type[Any]:
        """Import the class of observations, or take the client's as for actions.

        Raises:
            ImportError: As `get_client_class`.
        """
        found = self._exported(self.observation_class_name)
        if found is None:
            found = _argument(self.get_client_class(), 1)
        if found is None:
            raise self._missing(self.observation_class_name)
        return found

    def _exported(self, name: str) -> type[Any] | None:
        for module in self._modules():
            value = getattr(module, name, None)
            if isinstance(value, type):
                return value
        return None

    def _modules(self) -> Iterator[ModuleType]:
        package = self.client_module_path.partition(".")[0]
        yield import_module(self.client_module_path)
        yield import_module(package)
        if find_spec(f"{package}.models") is not None:
            yield import_module(f"{package}.models")

    def _missing(self, name: str) -> ImportError:
        message = (
            f"the package {self.package_name} has no class {name} in "
            f"{self.client_module_path}"
        )
        return ImportError(message, name=self.client_module_path)


def key_of(name: str) -> str:
    """Return the key of an environment: ``Grid-World-Env`` is ``grid_world``."""
    return name.strip().lower().replace("-", "_").removesuffix("_env")


def _action_of(client_class: type[EnvClient[Any, Any, Any]]) -> type[Any] | None:
    if issubclass(client_class, MCPClientBase):
        from openenv.core.env_server.mcp_types import (  # noqa: PLC0415 - rarely needed
            CallToolAction,
        )

        return CallToolAction
    return _argument(client_class, 0)


def _argument(
    client_class: type[EnvClient[Any, Any, Any]], place: int
) -> type[Any] | None:
    arguments = type_arguments(client_class, EnvClient)
    value = arguments[place] if arguments is not None else None
    return value if isinstance(value, type) else None
