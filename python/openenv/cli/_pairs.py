"""Options that are KEY=VALUE."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openenv.cli._console import WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_pairs(
    option: str, given: Iterable[str], *, secret: bool = False
) -> dict[str, str]:
    """Split KEY=VALUE; the value may be empty and may contain further `=`.

    Args:
        option: its name, for the error.
        given: what the user wrote.
        secret: whether an error must not repeat it.

    Raises:
        WrongUse: one has no `=`, or no key that can be a variable's name.
    """
    found = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not _KEY.fullmatch(key):
            shown = "<redacted>" if secret else repr(text)
            message = f"{option} must be KEY=VALUE, got {shown}"
            raise WrongUse(message)
        found[key] = value
    return found
