"""The value of ``_ws`` while a client is connected by itself."""

# ruff: noqa: SLF001 - the client's own inside

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from openenv.core._native import native
from openenv.errors import ConnectionClosed

if TYPE_CHECKING:
    from openenv.core._client.aio import Connection
    from openenv.core._client.raw import RawMessages

_CLOSE_PATIENCE_S: Final = 1.0
_OPEN: Final = 1  # as `websockets.protocol.State` counts
_CLOSED: Final = 3


class OwnSocket:
    """Offer a client's connection by the names that a connection of websockets has.

    Args:
        client: The client.
        connection: Its connection, which this speaks to as long as it is the client's.
    """

    def __init__(self, client: RawMessages, connection: Connection) -> None:
        self._client = client
        self.connection = connection

    @property
    def closed(self) -> bool:
        """Tell whether nothing can be sent any more."""
        return not self.connection.is_open

    @property
    def state(self) -> int:
        """Return what ``websockets.protocol.State`` calls OPEN or CLOSED."""
        return _CLOSED if self.closed else _OPEN

    async def send(self, text: str | bytes) -> None:
        """Send a message, given as JSON; errors as `RawMessages._send`.

        Raises:
            ConnectionClosed: The connection ended.
        """
        if self.closed:
            raise ConnectionClosed(reason="the socket is closed")
        await self._client._send_own(json.loads(text))

    async def recv(self) -> str:
        """Return the next message as JSON; errors as `RawMessages._receive`."""
        message: dict[str, Any] = await self._client._receive_own()
        return native.json_encode(message).decode()

    async def close(self, *_: object) -> None:
        """End the connection and with it the session, as a server does that goes."""
        await self._client._home.run(lambda: self.connection.close(_CLOSE_PATIENCE_S))
