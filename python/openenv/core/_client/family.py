"""More sessions of one client: clients of their own that end with it."""

# ruff: noqa: ANN401, SLF001 - one class's insides, seen from its children

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, Self, cast

from openenv.core._client.dual import awaited, now_or_later
from openenv.core._client.http import get_json
from openenv.core._client.turns import closed_meanwhile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openenv.core._client.home import Home
    from openenv.core._client.settings import Settings


class Family:
    """Add `new_session` and `schema` to a client."""

    _settings: Settings
    _home: Home
    _mode: str
    # Of the class, because some tests make clients without __init__.
    _child_clients: tuple[Any, ...] = ()
    _parent: weakref.ref[Any] | None = None
    _closes: int = 0

    def new_session(self) -> Awaitable[Self]:
        """Open one more session on the same server.

        A provider that this client starts is started by now, and stays this client's.

        Returns:
            A connected client of the same class and settings, which may be used beside
            this one and is closed with it, if it was not before.

        Raises:
            ConnectFailed: See `EnvClient.connect`.
            CapacityReached: The server has no session left.
        """
        return now_or_later(self._new_session_async())

    def schema(self) -> Awaitable[dict[str, Any]]:
        """Ask which fields actions, observations and the state have.

        Returns:
            JSON schemas by name: ``action``, ``observation``, ``state`` and, from
            newer servers, ``reset_observation``.

        Raises:
            ConnectFailed: The server was not reached, or answered an error.
        """
        return now_or_later(self._schema_async())

    async def _new_session_async(self) -> Self:
        closes = self._closes
        await self._home.run(self._home.link.start_provider)
        self._refuse_closed_since(closes)
        child: Any = self._sibling()
        with _adopting:
            self._child_clients += (child,)
        try:
            await child._call_own("connect")
            # On another thread the parent may have closed it before it began.
            self._refuse_closed_since(closes)
        except BaseException:
            await child._call_own("close")
            raise
        return cast("Self", child)

    async def _schema_async(self) -> dict[str, Any]:
        await self._home.run(self._home.link.start_provider)
        schemas: dict[str, Any] = await get_json(self._settings, "/schema")
        return schemas

    def _sibling(self) -> Self:
        """Make an unconnected client by the same constructor, with today's settings."""
        settings = self._settings
        options = {
            "base_url": settings.base_url,
            "mode": self._mode,
            "headers": dict(settings.headers),
        }
        sibling: Any = type(self)(**_accepted(type(self), options))
        sibling._settings = dataclasses.replace(settings)
        sibling._home = sibling._new_home()
        sibling._parent = weakref.ref(self)
        return cast("Self", sibling)

    def _start_closing_children(self) -> asyncio.Future[list[object]]:
        with _adopting:
            children, self._child_clients = self._child_clients, ()
            self._closes += 1
        ends = (child._call_own("close") for child in children)
        return asyncio.gather(*ends, return_exceptions=True)

    def _refuse_closed_since(self, closes: int) -> None:
        if self._closes != closes:
            raise closed_meanwhile()

    async def _call_own(self, name: str) -> Any:
        """Call a method in a loop, where an override may not expect one."""
        method = getattr(self, name)
        if is_plain_override(self, name, method):
            return await awaited(await asyncio.to_thread(method))
        return await method()

    def _leave_parent(self) -> None:
        parent = None if self._parent is None else self._parent()
        if parent is not None:
            with _adopting:
                others = (child for child in parent._child_clients if child is not self)
                parent._child_clients = tuple(others)


def is_plain_override(client: Any, name: str, method: Callable[..., Any]) -> bool:
    """Tell whether a method expects values of what it calls, as outside of loops."""
    return not inspect.iscoroutinefunction(method) and client._has_own(name)


def _accepted(cls: type, options: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(cls).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return options
    names = {each.name for each in parameters}
    return {name: value for name, value in options.items() if name in names}


_adopting: Final = threading.Lock()  # children may be made by many threads
