"""An HTTP proxy that makes tunnels to this machine, whatever the host asked for."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.integration.client.scripted import raw_server


@dataclass
class TestProxy:
    """Tell who asked for what, and refuse those who have no password if it has one."""

    __test__ = False

    port: int = 0
    password: str | None = None
    answer: bytes | None = None
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader, writer) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await self._serve(reader, writer)

    async def _serve(self, reader, writer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, place, _ = head.split(None, 2)
        self.asked.append(f"{method} {place}")
        if self.answer is not None:
            writer.write(self.answer)
            return
        if self.password is not None and self._ticket() not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        port = int(place.rpartition(":")[2])
        inward, outward = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(carry(reader, outward), carry(inward, writer))
        finally:
            outward.close()
            with contextlib.suppress(OSError):
                await outward.wait_closed()

    def _ticket(self) -> str:
        coded = base64.b64encode(f"me:{self.password}".encode()).decode()
        return f"Proxy-Authorization: Basic {coded}\r\n"


async def carry(reader, writer) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
        else:  # TLS
            writer.close()


@asynccontextmanager
async def proxying(tls=None, **settings):
    """Serve as a proxy until the block ends."""
    proxy = TestProxy(**settings)
    async with raw_server(proxy.serve, tls=tls) as proxy.port:
        yield proxy
