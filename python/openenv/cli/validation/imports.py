"""Checks of a package's own code, imported; run in the child process of `probe`."""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pydantic import BaseModel

from openenv.cli.validation.checks import Check, Fault, NotApplicable, Verdict
from openenv.cli.validation.foreign import call
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.structs import ActionStruct, ObservationStruct, StateStruct
from openenv.rollout.environment import EnvironmentFolder, load_application
from openenv.rollout.errors import InvalidRollout
from openenv.rollout.sampling import compile_sampler

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

_FRAMEWORKS: Final = ("fastapi", "starlette", "uvicorn")
_KINDS: Final = {
    "action": (Action, ActionStruct),
    "observation": (Observation, ObservationStruct),
    "state": (State, StateStruct),
}
# What the server itself takes out of an observation, and what graders ask a state.
_FIELDS: Final = {
    "action": (),
    "observation": ("done", "reward"),
    "state": ("episode_id", "step_count"),
}


@dataclass
class Code:
    """A package's code; each part is imported by the check that is about it."""

    folder: Path
    app: str
    client_class: type[EnvClient[Any, Any, Any]] | None = None
    application: Any = None
    told: str = ""
    action_schema: dict[str, Any] = field(default_factory=dict)
    sample: Callable[[random.Random], Any] | None = None

    @property
    def server(self) -> Any:  # noqa: ANN401 - HTTPEnvServer, whose module is heavy
        """The application's `HTTPEnvServer`."""
        return self.application.state.openenv_server

    @cached_property
    def prefix(self) -> str:
        """What modules of the package start with; empty where it is none."""
        is_package = (self.folder / "__init__.py").is_file()
        return f"{self.folder.name}." if is_package else ""

    def draw(self, rng: random.Random) -> dict[str, Any]:
        """Draw an action; the checks that ask have found that it can be drawn."""
        return {} if self.sample is None else dict(self.sample(rng))

    def typed(self, action: dict[str, Any]) -> Any:  # noqa: ANN401 - the client's own type
        """Make the client's own action of a drawn one."""
        arguments = _type_arguments(self.client_class) if self.client_class else ()
        cls: Any = arguments[0] if arguments else None
        # A client that takes any action is given what the server declares.
        if cls is Any:
            cls = self.server.action_cls
        if not isinstance(cls, type) or cls is dict:
            return action
        if issubclass(cls, BaseModel):
            return cls.model_validate(action)
        return msgspec.convert(action, cls)


def _client_imports(code: Code) -> None:
    _put_on_path(code.folder)
    before = set(sys.modules)
    try:
        module = call(
            code.folder, lambda: importlib.import_module(f"{code.prefix}client")
        )
    except Fault as fault:
        code.told = fault.why
        raise
    code.client_class = _find_client(module)
    if code.client_class is None:
        raise Fault(
            "client.py defines no subclass of EnvClient",
            "write class MyEnv(EnvClient[MyAction, MyObservation, MyState])",
        )
    server = sorted(
        name
        for name in set(sys.modules) - before
        if name.removeprefix(code.prefix).partition(".")[0] in ("server", *_FRAMEWORKS)
    )
    if server:
        raise Fault(
            f"importing client.py imports {server[0]}: a client needs no server",
            "let client.py import models.py and nothing of server/",
        )


def _app_imports(code: Code) -> None:
    environment = EnvironmentFolder(code.folder, code.folder.name, code.app)
    try:
        application = call(code.folder, lambda: load_application(environment))
    except Fault as fault:
        # The package imports its client, so the app fails for the client's fault.
        if fault.why == code.told:
            raise NotApplicable("needs client.import", blocks=True) from None
        raise
    except InvalidRollout as error:
        mend = "name the application in `app`, module:attribute"
        raise Fault(str(error), mend) from None
    state = getattr(application, "state", None)
    if getattr(state, "openenv_server", None) is None:
        raise Fault(
            f"{code.app} was not made by create_app",
            "write app = create_app(MyEnvironment, MyAction, MyObservation)",
        )
    code.application = application


def _check_type(code: Code, role: str) -> None:
    cls = getattr(code.server, f"{role}_cls")
    if cls is None or cls is dict:
        raise NotApplicable(f"the {role} is a dict")
    for other, classes in _KINDS.items():
        if other != role and isinstance(cls, type) and issubclass(cls, classes):
            raise Fault(
                f"the {role} class {cls.__name__} derives from {other.capitalize()}",
                f"derive it from {role.capitalize()}, and mind the order of "
                "create_app's arguments",
            )
    schema = call(code.folder, lambda: _schema(cls))
    fields = schema.get("properties", {})
    missing = [name for name in _FIELDS[role] if name not in fields]
    if missing:
        raise Fault(
            f"the {role} class {cls.__name__} has no {' and no '.join(missing)}",
            f"derive it from {role.capitalize()}",
        )


def _action(code: Code) -> None:
    _check_type(code, "action")


def _observation(code: Code) -> None:
    _check_type(code, "observation")


def _state(code: Code) -> None:
    _check_type(code, "state")


def _drawable(code: Code) -> None:
    code.action_schema = _schema(code.server.action_cls)
    try:
        code.sample = compile_sampler(code.action_schema)
    except InvalidRollout as error:
        raise NotApplicable(f"no actions can be drawn: {error}", blocks=True) from None


def _client_types(code: Code) -> None:
    """Compare what the client exchanges with what the server does."""
    client = code.client_class
    if client is None:
        raise NotApplicable("needs a client")
    arguments = _type_arguments(client)
    for role, mine in zip(("action", "observation", "state"), arguments, strict=False):
        theirs = getattr(code.server, f"{role}_cls")
        # `Any` is a class, but it says nothing of what the client exchanges.
        if mine is Any or not (isinstance(mine, type) and isinstance(theirs, type)):
            continue
        # A state that the server was not told is open: it may be any.
        if role == "state" and theirs in (State, StateStruct):
            continue
        if not _same_class(code, mine, theirs):
            raise Fault(
                f"the client's {role} is {mine.__name__}, the server's is "
                f"{theirs.__name__}",
                "let client.py and app.py import the same class of models.py",
            )


def _concurrency(code: Code) -> None:
    server = code.server
    factory = server._env_factory  # noqa: SLF001 - no public face tells the class
    if not inspect.isclass(factory):
        raise NotApplicable("environments are made by a function")
    if not hasattr(factory, "SUPPORTS_CONCURRENT_SESSIONS"):
        raise Fault(
            f"{factory.__name__} has no SUPPORTS_CONCURRENT_SESSIONS",
            "derive it from Environment",
            Verdict.WARN,
        )


IMPORT_CHECKS: Final[tuple[Check[Code], ...]] = (
    Check("client.import", _client_imports),
    Check("app.import", _app_imports),
    Check("types.action", _action, ("app.import",)),
    Check("types.observation", _observation, ("types.action",)),
    Check("types.state", _state, ("app.import",)),
    Check("types.client", _client_types, ("types.observation", "client.import")),
    Check("types.flag", _concurrency, ("app.import",)),
    Check(
        "types.drawable",
        _drawable,
        ("types.action", "types.observation", "types.state"),
    ),
)


def _put_on_path(folder: Path) -> None:
    # As `load_application` has it, but the package itself is what is imported here.
    if (folder / "__init__.py").is_file():
        sys.path.append(str(folder.parent))
    else:
        sys.path.insert(0, str(folder))


def _find_client(module: Any) -> type[EnvClient[Any, Any, Any]] | None:  # noqa: ANN401 - a module
    found = [
        each
        for each in vars(module).values()
        if inspect.isclass(each)
        and issubclass(each, EnvClient)
        and each.__module__ == module.__name__
    ]
    return found[0] if found else None


def _schema(cls: Any) -> dict[str, Any]:  # noqa: ANN401 - a class of any library
    # Here and private: the schema that the server of this process tells.
    from openenv.core.env_server._codec import json_schema  # noqa: PLC0415

    return json_schema(cls)


def _type_arguments(client: type[EnvClient[Any, Any, Any]]) -> tuple[Any, ...]:
    for base in getattr(client, "__orig_bases__", ()):
        arguments: tuple[Any, ...] = getattr(base, "__args__", ())
        if len(arguments) == len(_KINDS):
            return arguments
    return ()


def _same_class(code: Code, mine: type, theirs: type) -> bool:
    """Tell whether it is one class, perhaps imported under two names.

    A folder that is a package and on the path has `models` and `my_env.models`.
    """
    names = {
        f"{cls.__module__.removeprefix(code.prefix)}.{cls.__qualname__}"
        for cls in (mine, theirs)
    }
    return len(names) == 1 or issubclass(theirs, mine)
