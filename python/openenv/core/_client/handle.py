"""What the client's factories return: a connected client, once it is asked for.

::

    env = await Env.from_docker_image("echo-env:latest")
    async with Env.from_docker_image("echo-env:latest") as env:
        ...
    with Env.from_docker_image("echo-env:latest") as env:
        ...
    env = Env.from_docker_image("echo-env:latest").sync()
    env = Env.from_docker_image("echo-env:latest").started()

Nothing is started before. A handle is a coroutine, so ``asyncio.run`` and
``create_task`` take it as well.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from openenv.core._client.io_thread import run_in_background

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from openenv.core.client_types import ActT, ObsT, StateT
    from openenv.core.env_client import EnvClient
    from openenv.core.sync_client import SyncEnvClient

ClientT_co = TypeVar("ClientT_co", covariant=True)


class Handle(Coroutine[Any, Any, ClientT_co]):
    """Give one connected client, in the way the caller asks for it.

    Args:
        make: Makes the client, an `EnvClient`, unconnected. Connecting starts its
            provider, and a failure stops that again.
    """

    def __init__(self, make: Callable[[], ClientT_co]) -> None:
        self._make: Callable[[], ClientT_co] | None = make
        self._coroutine: Coroutine[Any, Any, ClientT_co] | None = None
        self._client: Any = None

    @override
    def __await__(self) -> Generator[Any, Any, ClientT_co]:
        return self._driven().__await__()

    @override
    def send(self, value: Any) -> Any:
        return self._driven().send(value)

    @override
    def throw(self, *args: Any) -> Any:
        return self._driven().throw(*args)

    @override
    def close(self) -> None:
        if self._coroutine is not None:
            self._coroutine.close()

    def sync(
        self: Handle[EnvClient[ActT, ObsT, StateT]],
    ) -> SyncEnvClient[ActT, ObsT, StateT]:
        """Block until the client is connected and return its blocking face."""
        return self._take().sync().connect()

    def started(
        self: Handle[EnvClient[ActT, ObsT, StateT]],
    ) -> EnvClient[ActT, ObsT, StateT]:
        """Block until the server is ready and return its client, not yet connected.

        Its connection is opened by the first call, on the event loop that makes it, so
        this may be called outside of any loop, or in another one.
        """
        client = self._take()
        lifetime = client._lifetime  # noqa: SLF001 - what `connect` begins with
        if lifetime is not None:
            run_in_background(lifetime.start())
        return client

    async def __aenter__(self) -> ClientT_co:
        return await self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.close()

    def __enter__(self) -> ClientT_co:
        client: Any = self._take()
        client.sync().connect()
        return client  # type: ignore[no-any-return]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._client is not None:
            self._client.sync().close()

    @override
    def __repr__(self) -> str:
        state = "not started" if self._make is not None else repr(self._client)
        return f"<{type(self).__name__}: {state}>"

    def _driven(self) -> Coroutine[Any, Any, ClientT_co]:
        if self._coroutine is None:
            self._coroutine = self._connected()
        return self._coroutine

    async def _connected(self) -> ClientT_co:
        client: Any = self._take()
        await client.connect()
        return client  # type: ignore[no-any-return]

    def _take(self) -> ClientT_co:
        make, self._make = self._make, None
        if make is None:
            # upstream: core/env_client.py words it so
            raise RuntimeError(
                "This bootstrap handle has already been resolved; call the factory "
                "again to start a new environment."
            )
        self._client = client = make()
        return client
