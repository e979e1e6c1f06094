"""Options of providers as callers give them, refused before anything is started.

Each function takes the option's name for the error: `TypeError` for what is of another
kind, `ValueError` for what is of that kind and cannot be. Both are the caller's fault.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Final

from openenv.core._client.settings import checked_wait_s

HIGHEST_PORT: Final = 65535
_LONGEST_STOP_S: Final = 86_400.0  # a day; the engine's SDK overflows far beyond


def checked_stop_timeout_s(value: object) -> float:
    """Return the seconds that a server has to end."""
    seconds = checked_wait_s("stop_timeout_s", value)
    if seconds > _LONGEST_STOP_S:
        message = f"stop_timeout_s must be at most a day (86400), not {seconds:g}"
        raise ValueError(message)
    return seconds


def checked_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number within bounds."""
    what = f"a whole number of at least {least}" + (f", at most {most}" if most else "")
    if not isinstance(value, int) or isinstance(value, bool):
        raise _mistyped(name, what, value)
    if value < least or (most is not None and value > most):
        message = f"{name} must be {what}, not {value}"
        raise ValueError(message)
    return value


def checked_port(name: str, value: object, least: int = 1) -> int | None:
    """Return a port, or None where that is given; zero only where `least` is."""
    return None if value is None else checked_whole(name, value, least, HIGHEST_PORT)


def checked_path(name: str, value: object) -> str:
    """Return a path as text."""
    if not isinstance(value, str | os.PathLike):
        raise _mistyped(name, "a path", value)
    return checked_text(name, os.fspath(value))


def checked_positive(name: str, value: object) -> float | None:
    """Return a finite number above zero, or None where that is given."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _mistyped(name, "a number above zero", value)
    if not 0 < value < math.inf:  # NaN is not
        message = f"{name} must be a finite number above zero, not {value}"
        raise ValueError(message)
    return value


def checked_text(name: str, value: object) -> str:
    """Return a text that is neither empty nor blank."""
    if not isinstance(value, str):
        raise _mistyped(name, "text", value)
    if not value.strip():
        message = f"{name} must not be empty"
        raise ValueError(message)
    return value


def checked_texts(name: str, value: object) -> tuple[str, ...]:
    """Return a sequence of texts, which one text is not."""
    what = "a sequence of texts"
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _mistyped(name, what, value)
    for item in value:
        if not isinstance(item, str):
            each = f"each of {name}"
            raise _mistyped(each, "text", item)
    return tuple(value)


def checked_command(value: object) -> None:
    """Refuse a command that is neither text nor a sequence of texts."""
    if value is None or isinstance(value, str):
        return
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise _mistyped("command", "text or a sequence of texts", value)
    checked_texts("command", value)


def checked_mapping(name: str, value: object, takes: str) -> dict[str, object]:
    """Return a mapping whose keys are texts.

    Args:
        name: The option.
        value: What was given.
        takes: An example of it.
    """
    if not isinstance(value, Mapping):
        raise _mistyped(name, f"a mapping such as {takes}", value)
    for key in value:
        if not isinstance(key, str):
            each = f"each key of {name}"
            raise _mistyped(each, "text", key)
    return dict(value)


def checked_text_mapping(name: str, value: object) -> dict[str, str]:
    """Return a mapping of texts to texts; numbers are written out."""
    given = checked_mapping(name, value, '{"name": "value"}')
    texts = {}
    for key, item in given.items():
        if not isinstance(item, str | int | float):
            each = f"{name}[{key!r}]"
            raise _mistyped(each, "text or a number", item)
        texts[key] = str(item)
    return texts


def checked_env_vars(value: object) -> dict[str, str]:
    """Return environment variables, none for None; numbers are written out."""
    variables = {} if value is None else checked_text_mapping("env_vars", value)
    for name, text in variables.items():
        if not name or "=" in name or "\0" in name + text:
            message = f"env_vars[{name!r}] cannot be an environment variable"
            raise ValueError(message)
    return variables


def _mistyped(name: str, what: str, value: object) -> TypeError:
    return TypeError(f"{name} must be {what}, not {type(value).__name__}")
