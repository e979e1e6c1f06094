"""Find what a class put in for the type parameters of a generic base.

``class A(EnvClient[X, Y, Z])`` says it directly; a base in between may be generic
itself (``class B(A2[Y]): …`` with ``class A2(EnvClient[X, ObsT, Z], Generic[ObsT])``),
and arguments may be written as strings.
"""

# ruff: noqa: ANN401 - type arguments may be anything

from __future__ import annotations

import sys
import types
import typing
from typing import Any, ForwardRef, TypeVar, get_args, get_origin

Arguments = tuple[Any, ...]


def type_arguments(cls: object, base: type) -> Arguments | None:
    """Return the arguments that a class, or an alias of one, gives to a base.

    Args:
        cls: A class, or an alias such as ``MyClient[int]``.
        base: The generic base class.

    Returns:
        One item a parameter of the base; a `TypeVar` where nothing was put in.
        None when the class names no arguments at all.
    """
    origin, given = get_origin(cls), get_args(cls)
    if origin is None:
        return _of_class(cls, base) if isinstance(cls, type) else None
    if origin is base:
        return given
    found = _of_class(origin, base) if isinstance(origin, type) else None
    if found is None:
        return None
    parameters = getattr(origin, "__parameters__", ())
    return _put_in(found, dict(zip(parameters, given, strict=False)))


def _of_class(cls: type, base: type) -> Arguments | None:
    if cls is base or not issubclass(cls, base):
        return None
    for parent in _original_bases(cls):
        found = type_arguments(parent, base)
        if found is not None:
            return tuple(_evaluated(argument, cls) for argument in found)
    return None


def _original_bases(cls: type) -> tuple[Any, ...]:
    # Looked up in the class itself: a plain subclass inherits its parent's.
    bases: tuple[Any, ...] = cls.__dict__.get("__orig_bases__", cls.__bases__)
    return bases


def _put_in(found: Arguments, values: dict[Any, Any]) -> Arguments:
    return tuple(_substituted(argument, values) for argument in found)


def _substituted(argument: Any, values: dict[Any, Any]) -> Any:
    if isinstance(argument, TypeVar):
        return values.get(argument, argument)
    inner = getattr(argument, "__parameters__", ())
    if not inner or isinstance(argument, type):
        return argument
    return argument[tuple(values.get(name, name) for name in inner)]


def _evaluated(argument: Any, cls: type) -> Any:
    if isinstance(argument, str):
        argument = ForwardRef(argument)
    if not isinstance(argument, ForwardRef):
        return argument
    holder = types.SimpleNamespace(__annotations__={"it": argument})
    module = sys.modules.get(cls.__module__)
    return typing.get_type_hints(holder, vars(module) if module else {})["it"]
