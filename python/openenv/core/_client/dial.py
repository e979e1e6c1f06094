"""Where to: the rules that make one WebSocket address of what a user wrote.

``http`` and ``ws`` are plain, ``https`` and ``wss`` are TLS, a bare host is plain.
Blanks around the URL and trailing slashes are dropped, a path prefix and the query
are kept, a fragment is not, and ``/ws`` is added to the path unless it ends so.
The process environment is neither read nor changed.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, overload
from urllib.parse import SplitResult, quote, unquote, urlsplit

from typing_extensions import override

from openenv.core._client.proxy import (
    basic_authorization,
    open_tunnel,
    proxy_to,
)
from openenv.core._client.sockets import connected, hub_of, started
from openenv.core._client.tls import tls_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from openenv.core._client.proxy import Proxy
    from openenv.core._client.settings import Settings
    from openenv.core._native import native

_PORTS: Final = {"ws": 80, "wss": 443}
_SCHEMES: Final = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}
_PATH_SAFE: Final = "/:@!$&'()*+,;=~%-._"  # RFC 3986 §3.3, and what is quoted already
_QUERY_SAFE: Final = _PATH_SAFE + "?"
_CREDENTIALS: Final = re.compile(r"^(\s*(?:[^/?#]*://)?)[^/?#]*@")


class Driver(asyncio.Protocol):
    """Be what drives an endpoint over a transport.

    Attributes:
        endpoint: Where a hub brings what it reads, past ``data_received``.
        max_unsent_bytes: What a peer may leave unread before it is cut off.
    """

    endpoint: native.ClientEndpoint
    max_unsent_bytes: int

    @override
    def connection_made(
        self, transport: asyncio.BaseTransport | native.Transport
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Address:
    """Say where a server listens and what the upgrade asks it for.

    ``authority`` is the ``Host`` header's value, ``target`` the request target
    (path and query), ``authorization`` the header for credentials in the URL.
    """

    secure: bool
    host: str
    port: int
    authority: str
    target: str
    authorization: str | None = None

    @property
    def place(self) -> str:
        """Return host and port, the port in any case."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the URL without credentials; see `shown_url` for people to read."""
        scheme = "wss" if self.secure else "ws"
        return f"{scheme}://{self.authority}{self.target}"


def parse_address(url: str) -> Address:
    """Make an address of a base URL in any form the module describes.

    Args:
        url: Such as ``https://host/prefix?token=x``, ``host:8000``, ``ws://[::1]:1``.

    Raises:
        ValueError: No host, an unknown scheme or an impossible port; caller's fault.
    """
    parts = urlsplit(to_ws_url(url))
    if not parts.hostname:
        msg = f"no host in URL {shown_url(url)!r}"
        raise ValueError(msg)
    port = _port(parts, url)
    host = _ascii_host(parts.hostname, url)
    shown = f"[{host}]" if ":" in host else host
    return Address(
        secure=parts.scheme == "wss",
        host=host,
        port=port,
        authority=shown if port == _PORTS[parts.scheme] else f"{shown}:{port}",
        target=_target(parts),
        authorization=basic_authorization(parts.username, parts.password),
    )


def to_ws_url(url: str) -> str:
    """Map the scheme of a base URL to ``ws`` or ``wss``; all else stays.

    Raises:
        ValueError: The URL is blank or its scheme is neither HTTP nor WebSocket.
    """
    text = url.strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "ws", text
    if not rest:
        msg = f"no host in URL {shown_url(url)!r}"
        raise ValueError(msg)
    mapped = _SCHEMES.get(scheme.lower())
    if mapped is None:
        msg = (
            f"unknown scheme {scheme!r} in URL {shown_url(url)!r}; "
            "use http, https, ws or wss"
        )
        raise ValueError(msg)
    return f"{mapped}://{rest}"


@overload
def shown_url(url: str) -> str: ...
@overload
def shown_url(url: None) -> None: ...
def shown_url(url: str | None) -> str | None:
    """Return a URL, good or not, for people to read, who may be others than its owner.

    Credentials are left out, and of a query all but that there is one.
    """
    if url is None:
        return None
    shown, query, _ = _CREDENTIALS.sub(r"\1", url, count=1).partition("?")
    return f"{shown}?…" if query else shown


def with_ws_path(url: str) -> str:
    """Return the WebSocket form of a base URL, its path ending in ``/ws``."""
    parts = urlsplit(to_ws_url(url))
    return parts._replace(path=_ws_path(parts.path), fragment="").geturl()


async def open_transport(
    loop: asyncio.AbstractEventLoop,
    address: Address,
    settings: Settings,
    driver_factory: Callable[[], Driver],
) -> None:
    """Resolve, connect and, where the address says so, do the TLS handshake.

    Args:
        loop: The running loop, which the transport will belong to.
        address: Where to.
        settings: What they say about the proxy and TLS.
        driver_factory: Makes the driver; it gets ``connection_made``.

    Raises:
        OSError: DNS, TCP or TLS failed (``ssl.SSLError`` is one).
        ConnectFailed: The proxy on the way refused.
    """
    proxy = _proxy(address, settings)
    hub = hub_of(loop) if proxy is None and not address.secure else None
    if hub is None:
        await _open(loop, address, settings, proxy, driver_factory())
        return
    sock = await connected(loop, address.host, address.port)
    driver = driver_factory()
    driver.connection_made(
        hub.attach(sock, driver, driver.endpoint, driver.max_unsent_bytes)
    )


async def open_streams(
    address: Address, settings: Settings
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect as `open_transport`, for what is no WebSocket; errors likewise."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    proxy = _proxy(address, settings)
    transport = await _open(loop, address, settings, proxy, protocol)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _open(
    loop: asyncio.AbstractEventLoop,
    address: Address,
    settings: Settings,
    proxy: Proxy | None,
    protocol: asyncio.Protocol,
) -> asyncio.Transport:
    context = _tls(settings) if address.secure else None
    if proxy is not None:
        around = _tls(settings) if proxy.secure else None
        tunnel = await open_tunnel(loop, proxy, address.place, around)
        return await _start(loop, tunnel, address, context, protocol)
    sock = await connected(loop, address.host, address.port)
    return await started(loop, sock, address.host, context, protocol)


def _proxy(address: Address, settings: Settings) -> Proxy | None:
    return proxy_to(address.host, address.port, settings.proxy, secure=address.secure)


def _tls(settings: Settings) -> ssl.SSLContext:
    return tls_context(settings.verify, settings.cert)


async def _start(
    loop: asyncio.AbstractEventLoop,
    transport: asyncio.Transport,
    address: Address,
    context: ssl.SSLContext | None,
    protocol: asyncio.Protocol,
) -> asyncio.Transport:
    if context is None:
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        return transport
    try:
        secured = await loop.start_tls(
            transport, protocol, context, server_hostname=address.host
        )
    except BaseException:
        transport.abort()
        raise
    assert secured is not None  # only a transport that closes gives none
    protocol.connection_made(secured)
    return secured


def _port(parts: SplitResult, url: str) -> int:
    try:
        port = parts.port
    except ValueError as exc:
        msg = f"impossible port in URL {shown_url(url)!r}"
        raise ValueError(msg) from exc
    return _PORTS[parts.scheme] if port is None else port


def _ascii_host(hostname: str, url: str) -> str:
    host = unquote(hostname)
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as exc:
        msg = f"impossible host in URL {shown_url(url)!r}"
        raise ValueError(msg) from exc


def _target(parts: SplitResult) -> str:
    path = quote(_ws_path(parts.path), safe=_PATH_SAFE)
    return f"{path}?{quote(parts.query, safe=_QUERY_SAFE)}" if parts.query else path


def _ws_path(path: str) -> str:
    trimmed = path.rstrip("/")
    return trimmed if trimmed.endswith("/ws") else f"{trimmed}/ws"
