"""A local port that leads to Pods, through the API server.

Each connection gets a WebSocket of its own to the `portforward` of one ready Pod, in
turn. Its subprotocol `v4.channel.k8s.io` sends binary messages whose first byte is a
channel: 0 is the data of the port, 1 an error text. The server begins both with the
port's number, two bytes, little-endian. One direction cannot be ended alone, so the
end of either side ends both.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import httpx2
from httpx2.websockets import HTTPXWSException
from lightkube.config.client_adapter import ConnectionParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from httpx2.websockets import AsyncWebSocketSession
    from lightkube.config.kubeconfig import SingleConfig

_SUBPROTOCOL: Final = "v4.channel.k8s.io"
_DATA: Final = 0
_DATA_PREFIX: Final = b"\x00"
_PORT_BYTES: Final = 2
_CHUNK_BYTES: Final = 64 * 1024
# Kubelets send what they read at once, 32 KiB; more would be another protocol.
_MAX_MESSAGE_BYTES: Final = 1024 * 1024
# Balancers before the API server close what is idle for a minute; whether a ping is
# answered is left to the client at the end of the tunnel, which has pings of its own.
_PING_S: Final = 20.0

_log = logging.getLogger(__name__)


class PortForward:
    """Lead connections of a local port to the port of Pods.

    Args:
        config: The cluster, and the user to work as.
        namespace: The Pods'.
        port: The Pods'.
        ready_pods: Returns the names of the Pods to choose from.
    """

    def __init__(
        self,
        config: SingleConfig,
        namespace: str,
        port: int,
        ready_pods: Callable[[], list[str]],
    ) -> None:
        # A tunnel is a connection; the usual limit of 100 would be one of sessions.
        self._http = httpx2.AsyncClient(
            **ConnectionParams().httpx_params(config),
            limits=httpx2.Limits(max_connections=None),
        )
        self._namespace = namespace
        self._port = port
        self._ready_pods = ready_pods
        self._turn = itertools.count()
        self._server: asyncio.Server | None = None
        self._tunnels: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Listen on a free port of this machine's loopback and return it."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, limit=_CHUNK_BYTES
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Close the port and all tunnels."""
        if self._server is not None:
            self._server.close()
        tunnels = list(self._tunnels)
        for tunnel in tunnels:
            tunnel.cancel()
        await asyncio.gather(*tunnels, return_exceptions=True)
        await self._http.aclose()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # A task of our own: a cancelled one of the stream server logs a traceback.
        tunnel = asyncio.ensure_future(self._tunnel(reader, writer))
        self._tunnels.add(tunnel)
        tunnel.add_done_callback(self._tunnels.discard)
        await asyncio.wait((tunnel,))

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            pods = self._ready_pods()
            if not pods:
                _log.warning("no Pod is ready for a connection of the port-forward")
                return
            await self._lead_to(pods[next(self._turn) % len(pods)], reader, writer)
        except* (httpx2.HTTPError, HTTPXWSException, OSError) as group:
            _log.debug("a port-forward ended: %s", group.exceptions)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _lead_to(
        self, pod: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connecting = self._http.websocket(
            f"/api/v1/namespaces/{self._namespace}/pods/{pod}/portforward",
            params={"ports": self._port},
            subprotocols=[_SUBPROTOCOL],
            max_message_size_bytes=_MAX_MESSAGE_BYTES,
            keepalive_ping_interval_seconds=_PING_S,
            keepalive_ping_timeout_seconds=None,
        )
        async with connecting as websocket:
            directions = (
                asyncio.ensure_future(_send(reader, websocket)),
                asyncio.ensure_future(_receive(websocket, writer)),
            )
            try:
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for direction in directions:
                    direction.cancel()
                ends = await asyncio.gather(*directions, return_exceptions=True)
        _log.debug("the port-forward to %s ended: %s", pod, ends)


async def _send(reader: asyncio.StreamReader, websocket: AsyncWebSocketSession) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        await websocket.send_bytes(_DATA_PREFIX + chunk)


async def _receive(
    websocket: AsyncWebSocketSession, writer: asyncio.StreamWriter
) -> None:
    greeted: set[int] = set()
    while message := await websocket.receive_bytes():
        channel, data = message[0], message[1:]
        if channel not in greeted:
            greeted.add(channel)
            data = data[_PORT_BYTES:]
        if channel == _DATA:
            writer.write(data)
            await writer.drain()
        elif data:
            _log.warning("the port-forward failed: %s", data.decode(errors="replace"))
            return
