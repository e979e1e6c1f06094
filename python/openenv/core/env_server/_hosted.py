"""One environment instance as the server sees it: what to call, and how."""

# ruff: noqa: ANN401 - the authors' values may be of any type

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from openenv.core.env_server.interfaces import overrides_method

Method = Callable[..., Any]
RunBlocking = Callable[[Callable[[], object]], Awaitable[object]]


class Hosted:
    """An environment and the methods the server calls on it.

    Attributes:
        environment: the instance; touched only where it runs.
        is_async: whether it overrides ``reset_async`` or ``step_async``, so that
            it runs on the environment loop.
        run_blocking: runs a function of an asynchronous environment that may block
            on a helper thread of the environment loop.
        session_id: id of its session, empty without one.
    """

    def __init__(self, environment: Any, run_blocking: RunBlocking) -> None:
        self.environment = environment
        self.run_blocking = run_blocking
        self.session_id = ""
        self._async_methods = frozenset(
            name
            for name in ("reset", "step")
            if overrides_method(environment, f"{name}_async")
        )
        self.is_async: bool = bool(self._async_methods)
        self._accepted: dict[str, _Parameters] = {}

    def method(self, name: str) -> tuple[Method, bool]:
        """Return ``reset`` or ``step``, the async one if overridden.

        Returns:
            The bound method and whether its result has to be awaited.
        """
        if name in self._async_methods:
            return getattr(self.environment, f"{name}_async"), True
        return getattr(self.environment, name), False

    def accepted(
        self, name: str, keywords: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """Split keywords into those the method takes and the names it does not.

        Args:
            name: ``reset`` or ``step``.
            keywords: what the client sent.
        """
        parameters = self._accepted.get(name)
        if parameters is None:
            parameters = _Parameters(self.method(name)[0])
            self._accepted[name] = parameters
        return parameters.split(keywords)


class _Parameters:
    """The keywords a method takes."""

    def __init__(self, method: Method) -> None:
        parameters = inspect.signature(method).parameters.values()
        kinds = inspect.Parameter
        self._takes_all = any(p.kind is kinds.VAR_KEYWORD for p in parameters)
        self._names = frozenset(
            p.name
            for p in parameters
            if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
        )

    def split(self, keywords: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        if self._takes_all:
            return dict(keywords), []
        taken = {k: v for k, v in keywords.items() if k in self._names}
        return taken, [k for k in keywords if k not in self._names]
