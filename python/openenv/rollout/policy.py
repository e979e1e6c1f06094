"""Policies: what chooses the next action.

A policy is any callable `(observation, episode) -> action`. It may be a coroutine
function. The observation is a `dict` unless the policy (or its module) names another
client by an attribute `client_class`; then it is that client's observation type and the
action its action type (a `dict` of its fields will do). All randomness should come from
`episode.rng`, so that the same `--seed` plays the same episodes again. `episode.memory`
is a dict that lives as long as the episode. A policy runs on the event loop of all
sessions: one that computes for long should be a coroutine function that hands the work
elsewhere.

Example:
    ```python
    # my_policies.py;  openenv rollout grid_world_env --policy my_policies:first_legal
    def first_legal(observation, episode):
        return {"direction": observation["legal_moves"][0]}
    ```
"""

from __future__ import annotations

import importlib
import inspect
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from openenv.errors import OpenEnvError
from openenv.rollout._boundary import Caught, called
from openenv.rollout.errors import InvalidRollout, NotAnAction

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from types import ModuleType

    from openenv.core.env_client import EnvClient

    # Any: the observation's and action's types are the environment's own.
    Policy = Callable[[Any, "Episode"], Any]
    ClientClass = type[EnvClient[Any, Any, Any]]


@dataclass(slots=True)
class Episode:
    """What a policy may know of the episode it plays.

    `number` counts the rollout's episodes from 0, `session` the sessions. `seed` was
    given to `reset`, and `rng` starts from it. `step` counts the steps taken so far.
    """

    number: int
    session: int
    seed: int
    rng: random.Random
    step: int = 0
    memory: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy and the client class it wants; None means dicts."""

    choose: Policy
    client_class: ClientClass | None


def load_policy(spec: str) -> LoadedPolicy:
    """Import a policy from `module:function`.

    The current directory is searched first, as `python -m` does.

    Args:
        spec: a dotted module, a colon, a name in it (dots allowed). A class that can be
            called without arguments is called once; its object is the policy.

    Raises:
        InvalidRollout: the spec, the module, the name or the signature is wrong.
    """
    module_name, separator, attribute = spec.partition(":")
    if not (module_name and separator and attribute):
        message = f"--policy must be module:function, got {spec!r}"
        raise InvalidRollout(message)
    module = _import_policy_module(module_name, attribute)
    found = _resolve(module, attribute)
    choose = called(found) if inspect.isclass(found) else found
    if isinstance(choose, Caught):
        message = f"policy class {spec} could not be made: {_describe(choose.error)}"
        raise InvalidRollout(message) from choose.error
    _check_signature(spec, choose)
    wanted = getattr(choose, "client_class", getattr(module, "client_class", None))
    return LoadedPolicy(cast("Policy", choose), _check_client_class(spec, wanted))


def refuse_no_action(action: object, error: Exception) -> None:
    """Blame a client's failure on the policy where what it returned is no action.

    Only then: a client with a `_step_payload` of its own may take any value.

    Args:
        action: what the policy returned and the client was given.
        error: what the client raised before it sent anything.

    Raises:
        NotAnAction: `action` is neither a mapping nor an object with fields.
    """
    has_fields = isinstance(action, Mapping) or any(
        hasattr(action, name)
        for name in ("__dict__", "__dataclass_fields__", "__struct_fields__")
    )
    if has_fields or isinstance(error, OpenEnvError):
        return
    message = (
        f"the policy returned {reprlib.repr(action)}, which is no action: return a "
        "dict of the action's fields, or the action type of its client_class"
    )
    raise NotAnAction(message) from error


def _import_policy_module(name: str, attribute: str) -> ModuleType:
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    module = called(lambda: importlib.import_module(name))
    if isinstance(module, Caught):
        message = f"cannot import policy module {name!r}: {_describe(module.error)}"
        dotted = _dotted(name)
        if dotted != name:
            message += f"; name a module, not a file: --policy {dotted}:{attribute}"
        raise InvalidRollout(message) from module.error
    return module


def _dotted(name: str) -> str:
    """Return the module that a path of a file below this directory stands for."""
    return ".".join(Path(name.removesuffix(".py")).parts)


def _resolve(module: ModuleType, attribute: str) -> object:
    found: object = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            message = f"module {module.__name__!r} has no policy {attribute!r}"
            raise InvalidRollout(message) from None
    return found


def _check_signature(spec: str, policy: object) -> None:
    if not callable(policy):
        message = f"policy {spec} is a {type(policy).__name__}, not a callable"
        raise InvalidRollout(message)
    try:
        signature = inspect.signature(policy)
    except (TypeError, ValueError):
        return  # a builtin without a signature: the first call will tell
    try:
        signature.bind(None, None)
    except TypeError as error:
        message = f"policy {spec} must take (observation, episode): {error}"
        raise InvalidRollout(message) from None


def _check_client_class(spec: str, wanted: object) -> ClientClass | None:
    if wanted is None:
        return None
    if not (inspect.isclass(wanted) and hasattr(wanted, "reset")):
        message = f"client_class of policy {spec} is not an EnvClient class"
        raise InvalidRollout(message)
    return cast("ClientClass", wanted)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
