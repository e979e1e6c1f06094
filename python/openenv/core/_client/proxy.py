"""Ways to a server through an HTTP proxy: which proxy, and the tunnel through it.

What the user says with ``proxy=`` rules: a URL, or None for none. True asks the process
environment (``wss_proxy``, ``https_proxy``, ``all_proxy`` and for plain connections
``ws_proxy`` and ``http_proxy``, in either case, and ``no_proxy``), as it is at that
moment and without changing it; this machine itself is reached directly.
A tunnel is made by ``CONNECT`` (RFC 9110 §9.3.6), for plain connections too.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import re
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from openenv.core._client.sockets import connected, started
from openenv.errors import ConnectFailed

if TYPE_CHECKING:
    import ssl

_PORTS: Final = {"http": 80, "https": 443}
_PLAIN_VARIABLES: Final = ("ws", "https", "http", "all")
_TLS_VARIABLES: Final = ("wss", "https", "all")
_MAX_HEAD_BYTES: Final = 65_536
_HEAD_END: Final = b"\r\n\r\n"
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?\r\n")


@dataclass(frozen=True, slots=True)
class Proxy:
    """Say where a proxy listens, and who asks it (``user:password``, quoted)."""

    secure: bool
    host: str
    port: int
    credentials: str = ""

    @property
    def url(self) -> str:
        """Return the URL, for people to read as well: credentials are left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "https" if self.secure else "http"
        return f"{scheme}://{host}:{self.port}"

    @property
    def authorization(self) -> str | None:
        """Return the header value for the credentials, None where there are none."""
        if not self.credentials:
            return None
        username, _, password = self.credentials.partition(":")
        return basic_authorization(username, password)


def checked_proxy(proxy: object) -> bool | str | None:
    """Return what the user said, once it is sure to mean something.

    Raises:
        TypeError: It is neither a URL nor True nor None; the caller's fault.
        ValueError: As `parse_proxy`.
    """
    if isinstance(proxy, str):
        proxy = proxy.strip()
        parse_proxy(proxy)
        return proxy
    if proxy is None or isinstance(proxy, bool):
        return proxy or None
    msg = f"proxy must be a URL, True or None, not {type(proxy).__name__}"
    raise TypeError(msg)


def parse_proxy(url: str) -> Proxy:
    """Make a proxy of its URL; a bare host is plain HTTP.

    Raises:
        ValueError: No host, an impossible port, or a kind of proxy that is not spoken.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in _PORTS:
        msg = (
            f"proxies of the kind {parts.scheme}:// are not supported; use an http:// "
            "or https:// proxy, or proxy=None for none"
        )
        raise ValueError(msg)
    try:
        port = parts.port or _PORTS[parts.scheme]
    except ValueError as exc:
        raise ValueError("impossible port in the URL of the proxy") from exc
    if not parts.hostname:
        raise ValueError("no host in the URL of the proxy")
    credentials, _, _ = parts.netloc.rpartition("@")
    return Proxy(parts.scheme == "https", parts.hostname, port, credentials)


def basic_authorization(username: str | None, password: str | None) -> str | None:
    """Return the header value for credentials in a URL, None where there are none."""
    if username is None:
        return None
    pair = f"{unquote(username)}:{unquote(password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode("ascii")


def proxy_to(
    host: str,
    port: int,
    setting: bool | str | None,
    *,
    secure: bool,
) -> Proxy | None:
    """Return the proxy on the way to a host, None for none.

    Args:
        host: Where to.
        port: Likewise.
        setting: A proxy's URL, None for none, or True for the environment's.
        secure: Whether TLS is spoken there.

    Raises:
        ConnectFailed: What the environment names is no proxy that is spoken.
    """
    if setting is True:
        setting = _from_environment(host, port, secure=secure)
    if not setting:
        return None
    try:
        return parse_proxy(setting)
    except ValueError as exc:
        raise ConnectFailed(str(exc)) from exc


def is_loopback(host: str) -> bool:
    """Tell whether a host names this machine only: ``localhost``, 127/8 or ``::1``."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def open_tunnel(
    loop: asyncio.AbstractEventLoop,
    proxy: Proxy,
    authority: str,
    context: ssl.SSLContext | None,
) -> asyncio.Transport:
    """Connect to a proxy and have it connect to a host.

    Args:
        loop: The running loop.
        proxy: The proxy.
        authority: The host and port, such as ``h:443`` or ``[::1]:80``.
        context: What is spoken to a secure proxy; None for the other kind.

    Returns:
        A transport whose bytes go to that host from now on; its protocol is to be set.

    Raises:
        OSError: The proxy was not reached.
        ConnectFailed: It refused, with its status, or answered nonsense.
    """
    sock = await connected(loop, proxy.host, proxy.port)
    head = _Head(loop)
    transport = await started(loop, sock, proxy.host, context, head)
    try:
        transport.write(_request(authority, proxy.authorization))
        status, reason = await head.answer
        _check(proxy, status, reason)
    except BaseException:
        transport.abort()
        raise
    return transport


def _from_environment(host: str, port: int, *, secure: bool) -> str | None:
    if is_loopback(host) or urllib.request.proxy_bypass(f"{host}:{port}"):
        return None
    known = urllib.request.getproxies()
    names = _TLS_VARIABLES if secure else _PLAIN_VARIABLES
    return next((known[name] for name in names if known.get(name)), None)


def _check(proxy: Proxy, status: int, reason: str) -> None:
    if not 200 <= status < 300:  # noqa: PLR2004 - RFC 9110 §15.3
        msg = f"the proxy {proxy.url} answered {status} {reason}".rstrip()
        raise ConnectFailed(msg, status=status)


def _request(authority: str, authorization: str | None) -> bytes:
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if authorization is not None:
        lines.append(f"Proxy-Authorization: {authorization}")
    return "\r\n".join([*lines, "", ""]).encode()


class _Head(asyncio.Protocol):
    """Wait for the head of one HTTP response, behind which nothing may come yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.answer: asyncio.Future[tuple[int, str]] = loop.create_future()
        self._bytes = bytearray()

    @override
    def data_received(self, data: bytes) -> None:
        self._bytes += data
        if self.answer.done():
            return
        end = self._bytes.find(_HEAD_END)
        if end < 0 and len(self._bytes) <= _MAX_HEAD_BYTES:
            return
        line = _STATUS_LINE.match(self._bytes)
        if end < 0 or line is None:
            self._fail("the proxy did not answer in HTTP")
            return
        status = int(line[1])
        if status < 300 and len(self._bytes) > end + len(_HEAD_END):  # noqa: PLR2004
            # The host is to be asked before it says anything.
            self._fail("the proxy sent more than its answer")
            return
        reason = (line[2] or b"").decode("latin-1")
        self.answer.set_result((status, reason))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self._fail("the proxy closed the connection without an answer")

    def _fail(self, why: str) -> None:
        self.answer.set_exception(ConnectFailed(why))
