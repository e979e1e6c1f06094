"""What the app factories were given, checked before anything is made of it."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from openenv.core.env_server._runner import close_unserved, factory_name
from openenv.core.env_server._runtime import ThreadLimits
from openenv.core.env_server.types import ConcurrencyConfig
from openenv.errors import ConcurrencyConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable


def refuse_wrong_env(env: object) -> None:
    """Raise TypeError unless ``env`` can make environments."""
    if not callable(env):
        message = (
            f"env must be a callable (class or factory function), got {type(env)}. "
            "Pass the environment class (e.g., MyEnvironment) not an instance "
            "(e.g., MyEnvironment())."
        )
        raise TypeError(message)
    if isinstance(env, type) and not (hasattr(env, "reset") and hasattr(env, "step")):
        message = (
            f"env must make environments, but {env.__name__} has no reset and step; "
            "the first argument is the environment class, then come the action class "
            "and the observation class"
        )
        raise TypeError(message)


def configured(
    max_concurrent_envs: int | None, config: ConcurrencyConfig | None
) -> ConcurrencyConfig:
    """Return the limits of the one argument that was given, else the default ones.

    Raises:
        ValueError: both were given.
    """
    if max_concurrent_envs is not None and config is not None:
        msg = (
            "Cannot specify both 'max_concurrent_envs' and 'concurrency_config'. "
            "Please use only one: put the limit into the config."
        )
        raise ValueError(msg)
    if config is not None:
        return config
    if max_concurrent_envs is None:
        return ConcurrencyConfig()
    return ConcurrencyConfig(max_concurrent_envs=max_concurrent_envs)


def thread_limits(env: Callable[[], Any], sessions: int) -> ThreadLimits:
    """Return how many threads the environment's class asks for.

    Raises:
        ValueError: its ``EXECUTION`` is unknown.
    """
    cls = _class_of(env)
    single = bool(getattr(cls, "REQUIRES_SINGLE_THREAD_EXECUTOR", False))
    execution = getattr(cls, "EXECUTION", "thread")
    if execution not in ("thread", "dedicated"):
        msg = f"EXECUTION is 'thread' or 'dedicated', not {execution!r}"
        raise ValueError(msg)
    return ThreadLimits(sessions, single, dedicated=execution == "dedicated")


def _class_of(env: Callable[[], Any]) -> type[Any] | None:
    """Return the environment class if the factory is one, or a partial of one."""
    while isinstance(env, functools.partial):
        env = env.func
    return env if inspect.isclass(env) else None


def supports_concurrency(
    env: Callable[[], Any], config: ConcurrencyConfig, wanted: int
) -> bool:
    """Tell whether the environment allows several instances.

    A function has to be called to find out; that is done only if several are
    wanted (upstream).

    Raises:
        ConcurrencyConfigurationError: the limit asks for it, the class does not
            allow it.
    """
    cls = _class_of(env)
    if cls is None and wanted > 1:
        cls = _probed_class(env)
    safe = bool(getattr(cls, "SUPPORTS_CONCURRENT_SESSIONS", False))
    if config.max_concurrent_envs > 1 and not safe:
        name = factory_name(env) if cls is None else cls.__name__
        raise ConcurrencyConfigurationError(name, config.max_concurrent_envs)
    return safe


def _probed_class(env: Callable[[], Any]) -> type[Any]:
    """Return the class of what a factory makes."""
    instance = env()
    close_unserved(instance)
    return type(instance)
