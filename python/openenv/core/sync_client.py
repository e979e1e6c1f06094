"""The blocking face of a client (upstream: core/sync_client.py)."""

# ruff: noqa: ANN401, SLF001 - upstream's signatures; two faces of one client

from __future__ import annotations

import copy
import functools
import inspect
from typing import TYPE_CHECKING, Any, Generic, Self

from typing_extensions import override

from openenv.core._client.dual import awaited, outside_of_loops
from openenv.core._client.family import is_plain_override
from openenv.core._client.io_thread import run_in_background
from openenv.core.client_types import ActT, ObsT, StateT, StepResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from openenv.core.env_client import EnvClient

__all__ = ["SyncEnvClient"]


class SyncEnvClient(Generic[ActT, ObsT, StateT]):
    """Offer a client's methods as blocking calls.

    What the client's class overrides is run: coroutine functions on the process's one
    I/O thread, others in the caller's, where the client's methods give values. Its
    other coroutine methods can be called here too and block; all other attributes are
    the client's. This works inside a running event loop as well (and blocks it).
    ``close`` leaves the face usable.

    Args:
        async_client: The client; it may be used both ways.

    Example:
        >>> from openenv.core.generic_client import GenericEnvClient
        >>> def episode() -> None:
        ...     with GenericEnvClient("http://localhost:8000").sync() as env:
        ...         result = env.reset(seed=7)
        ...         while not result.done:
        ...             result = env.step({"move": "left"})
    """

    def __init__(self, async_client: EnvClient[ActT, ObsT, StateT]) -> None:
        self._async = async_client

    @property
    def async_client(self) -> EnvClient[ActT, ObsT, StateT]:
        """Return the client behind this face."""
        return self._async

    def connect(self, *, retry_s: float | None = None) -> Self:
        """Open the connection; see `EnvClient.connect`."""
        if retry_s is None:  # an override need not know the keyword
            self._run("connect")
        else:
            self._run("connect", retry_s=retry_s)
        return self

    def new_session(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """Open one more session; see `EnvClient.new_session`."""
        client: EnvClient[ActT, ObsT, StateT] = self._run("new_session")
        return client.sync()

    def schema(self) -> dict[str, Any]:
        """Ask for the JSON schemas; see `EnvClient.schema`."""
        schemas: dict[str, Any] = self._run("schema")
        return schemas

    def disconnect(self) -> None:
        """Close the connection; see `EnvClient.disconnect`."""
        self._run("disconnect")

    def reset(self, **kwargs: Any) -> StepResult[ObsT]:
        """Begin an episode; see `EnvClient.reset`."""
        result: StepResult[ObsT] = self._run("reset", **kwargs)
        return result

    def step(self, action: ActT, **kwargs: Any) -> StepResult[ObsT]:
        """Do one action; see `EnvClient.step`."""
        result: StepResult[ObsT] = self._run("step", action, **kwargs)
        return result

    def state(self) -> StateT:
        """Ask for the state; see `EnvClient.state`."""
        state: StateT = self._run("state")
        return state

    def close(self) -> None:
        """Close the connection and stop the provider; see `EnvClient.close`."""
        self._run("close")

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @override
    def __repr__(self) -> str:
        return f"{self._async!r}.sync()"

    def __copy__(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        return copy.copy(self._async).sync()

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _face_of, (self._async,)

    def __getattr__(self, name: str) -> Any:
        if name == "_async":  # not there yet: copied or made without __init__
            raise AttributeError(name)
        value = getattr(self._async, name)
        if not inspect.iscoroutinefunction(value):
            return value

        @functools.wraps(value)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            return self._run(name, *args, **kwargs)

        return blocking

    def _run(self, name: str, *args: Any, **kwargs: Any) -> Any:
        client = self._async
        client._refuse_own_loop()
        method = getattr(client, name)
        if not is_plain_override(client, name, method):
            return run_in_background(_called(method, *args, **kwargs))
        with outside_of_loops():
            result = method(*args, **kwargs)
            if inspect.isawaitable(result):
                return run_in_background(awaited(result))
            return result


def _face_of(
    client: EnvClient[ActT, ObsT, StateT],
) -> SyncEnvClient[ActT, ObsT, StateT]:
    return client.sync()


async def _called(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # Called on the I/O loop, where the client's methods return awaitables.
    return await awaited(method(*args, **kwargs))
