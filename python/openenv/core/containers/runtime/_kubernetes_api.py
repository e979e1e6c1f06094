"""The way to the API server: configuration, clients, and their errors as ours."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx2
from lightkube import KubeConfig
from lightkube.core.exceptions import ApiError, ConfigError
from yaml import YAMLError

from openenv.core.containers.runtime._checked import checked_path
from openenv.core.containers.runtime._kubernetes_options import NAME
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightkube.config.kubeconfig import SingleConfig

GONE: Final = 404
# What its reader raises for what is no YAML, lacks keys, or has others than it knows.
_BROKEN: Final = (
    AttributeError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
    YAMLError,
)
_ADVICE: Final = "set KUBECONFIG, or give kubeconfig= and context= (docs/kubernetes.md)"
_REFUSALS: Final = frozenset({401, 403})
_SERVICE_ACCOUNT_TOKEN: Final = Path(
    "/var/run/secrets/kubernetes.io/serviceaccount/token"
)


def load_config(kubeconfig: str | Path | None, context: str | None) -> SingleConfig:
    """Return the cluster and the user to work as.

    Args:
        kubeconfig: A file; None takes the Pod's service account, then
            ``KUBECONFIG``, then ``~/.kube/config``.
        context: One of the file's; None takes its current one.

    Raises:
        ProviderError: There is none, or its file cannot be read.
        TypeError: An argument is of another kind than it takes.
    """
    if kubeconfig is not None:
        kubeconfig = checked_path("kubeconfig", kubeconfig)
    try:
        found = (
            KubeConfig.from_env()
            if kubeconfig is None
            else KubeConfig.from_file(kubeconfig)
        )
        config = found.get(context)
    except ConfigError as exc:
        message = f"no cluster is configured: {exc}; {_ADVICE}"
        raise ProviderError(message, NAME) from exc
    except _BROKEN as exc:
        message = (
            f"the kubeconfig cannot be read: {type(exc).__name__}: {exc}; {_ADVICE}"
        )
        raise ProviderError(message, NAME) from exc
    if config is None:
        message = (
            "no cluster is configured: the kubeconfig names no current context; "
            f"{_ADVICE}"
        )
        raise ProviderError(message, NAME)
    return config


def is_in_cluster() -> bool:
    """Tell whether this process runs in a Pod, where Services have DNS names."""
    return _SERVICE_ACCOUNT_TOKEN.exists()


def status_code(error: httpx2.HTTPError) -> int | None:
    """Return the code with which the API server refused; None where it was not it."""
    if isinstance(error, ApiError):
        return error.status.code
    if isinstance(error, httpx2.HTTPStatusError):
        return error.response.status_code
    return None


def is_refusal(error: httpx2.HTTPError) -> bool:
    """Tell whether asking again is pointless: the user may not do that."""
    return status_code(error) in _REFUSALS


@contextmanager
def broken_told() -> Iterator[None]:
    """Turn errors of certificates and keys that cannot be used into `ProviderError`."""
    try:
        yield
    except (ConfigError, *_BROKEN) as exc:
        message = (
            f"the kubeconfig names what cannot be used: {type(exc).__name__}: {exc}; "
            f"{_ADVICE}"
        )
        raise ProviderError(message, NAME) from exc


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn the client's errors into `ProviderError`.

    Args:
        what: What failed, such as ``cannot create Job x``.
    """
    try:
        yield
    except (httpx2.HTTPError, ConfigError) as exc:
        message = f"{what}: {str(exc) or type(exc).__name__}"
        raise ProviderError(message, NAME) from exc


@contextmanager
def gone_is_fine() -> Iterator[None]:
    """Pass over what is not there."""
    try:
        yield
    except ApiError as exc:
        if status_code(exc) != GONE:
            raise
