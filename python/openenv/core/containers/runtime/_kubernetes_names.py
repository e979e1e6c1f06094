"""What the API server takes as names, labels and paths.

It refuses others one by one, in the middle of a start. The rules are those of
https://kubernetes.io/docs/concepts/overview/working-with-objects/ (names, labels).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openenv.core.containers.runtime._checked import (
    checked_env_vars,
    checked_text,
    checked_text_mapping,
    checked_texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENV_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def refuse_service_name(name: str, value: object) -> None:
    """Refuse what is no DNS label that begins with a letter (RFC 1035)."""
    what = "lower-case letters, digits and '-', at most 63, a letter first"
    _refuse_unless(_SERVICE, _LONGEST_LABEL, name, value, what)


def refuse_label_name(name: str, value: object) -> None:
    """Refuse what is no DNS label (RFC 1123), such as a namespace has."""
    what = "lower-case letters, digits and '-', at most 63"
    _refuse_unless(_LABEL, _LONGEST_LABEL, name, value, what)


def refuse_subdomain(name: str, value: object) -> None:
    """Refuse what is no DNS subdomain (RFC 1123), such as a Secret has."""
    what = "lower-case letters, digits, '-' and '.', at most 253"
    _refuse_unless(_SUBDOMAIN, _LONGEST_SUBDOMAIN, name, value, what)


def refuse_subdomains(name: str, values: object) -> None:
    """Refuse what is no sequence of those."""
    for value in checked_texts(name, values):
        refuse_subdomain(f"each of {name}", value)


def refuse_keys(name: str, values: object) -> Mapping[str, str]:
    """Refuse keys that annotations and labels cannot have; return the mapping."""
    texts = checked_text_mapping(name, values)
    what = (
        "letters, digits, '-', '_' and '.', at most 63, after a domain and '/' if any"
    )
    for key in texts:
        prefix, slash, last = key.rpartition("/")
        if slash:
            refuse_subdomain(f"the domain of {key!r} in {name}", prefix)
        _refuse_unless(_QUALIFIED, _LONGEST_LABEL, f"each key of {name}", last, what)
    return texts


def refuse_labels(name: str, values: object) -> None:
    """Refuse what is no mapping of labels."""
    what = "letters, digits, '-', '_' and '.', at most 63, or empty"
    for key, text in refuse_keys(name, values).items():
        if text:
            each = f"{name}[{key!r}]"
            _refuse_unless(_QUALIFIED, _LONGEST_LABEL, each, text, what)


def checked_pod_variables(value: object) -> dict[str, str]:
    """Return environment variables of a container, none for None."""
    variables = checked_env_vars(value)
    for name in variables:
        what = "letters, digits, '-', '_' and '.', no digit first"
        _refuse_unless(
            _ENV_NAME, _LONGEST_SUBDOMAIN, "each key of env_vars", name, what
        )
    return variables


def refuse_probe_path(name: str, value: object) -> None:
    """Refuse what is no path of a URL."""
    if not checked_text(name, value).startswith("/"):
        message = f"{name} must begin with '/', not {value!r}"
        raise ValueError(message)


def _refuse_unless(
    pattern: re.Pattern[str], longest: int, name: str, value: object, what: str
) -> None:
    text = checked_text(name, value)
    if len(text) > longest or not pattern.fullmatch(text):
        message = f"{name} must be {what}, not {text!r}"
        raise ValueError(message)
