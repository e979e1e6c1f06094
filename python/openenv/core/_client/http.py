"""What a client asks for over HTTP, beside its WebSocket: rarely, and of one answer."""

# ruff: noqa: ANN401 - JSON is anything

from __future__ import annotations

import asyncio
import json
import math
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openenv.core._client.dial import parse_address
from openenv.core._client.proxy import proxy_to
from openenv.core._client.tls import tls_context
from openenv.errors import ConnectFailed, LimitExceeded, RemoteProtocolError

if TYPE_CHECKING:
    from openenv.core._client.dial import Address
    from openenv.core._client.settings import Settings


async def get_json(settings: Settings, path: str) -> Any:
    """GET a path below the server's URL, with the settings' headers, proxy and TLS.

    Args:
        settings: The client's; ``connect_timeout_s`` bounds every wait for the server.
        path: Such as ``/schema``.

    Raises:
        ConnectFailed: The server was not reached, or answered an error (``status``).
        LimitExceeded: The answer is larger than the client takes.
        RemoteProtocolError: It is no JSON.
    """
    return await asyncio.to_thread(_get_json, settings, path)


def _get_json(settings: Settings, path: str) -> Any:
    address = parse_address(settings.ws_url or "")
    request = _request(settings, address, path)
    url = request.full_url
    timeout_s = settings.connect_timeout_s
    try:
        with _opener(settings, address).open(
            request, timeout=None if math.isinf(timeout_s) else timeout_s
        ) as response:
            body = response.read(settings.max_message_bytes + 1)
    except urllib.error.HTTPError as exc:
        exc.close()
        msg = f"HTTP {exc.code} {exc.reason}"
        raise ConnectFailed(msg, url, exc.code) from exc
    except urllib.error.URLError as exc:
        raise ConnectFailed(str(exc.reason), url) from exc
    except (OSError, HTTPException) as exc:
        raise ConnectFailed(str(exc) or type(exc).__name__, url) from exc
    if len(body) > settings.max_message_bytes:
        msg = f"the answer of {url} is larger than max_message_size_mb says"
        raise LimitExceeded(msg, None, settings.max_message_bytes)
    try:
        return json.loads(body)
    except ValueError as exc:
        msg = f"{url} answered no JSON"
        raise RemoteProtocolError(msg) from exc


def _request(settings: Settings, address: Address, path: str) -> urllib.request.Request:
    target = urlsplit(address.target)
    place = target.path.removesuffix("/ws") + path
    query = f"?{target.query}" if target.query else ""
    scheme = "https" if address.secure else "http"
    request = urllib.request.Request(  # noqa: S310 - the scheme is one of these two
        f"{scheme}://{address.authority}{place}{query}", headers=dict(settings.headers)
    )
    if address.authorization is not None and not request.has_header("Authorization"):
        request.add_header("Authorization", address.authorization)
    return request


def _opener(settings: Settings, address: Address) -> urllib.request.OpenerDirector:
    context = tls_context(settings.verify, settings.cert) if address.secure else None
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(_proxies(settings, address)),
        urllib.request.HTTPSHandler(context=context),
    )


def _proxies(settings: Settings, address: Address) -> dict[str, str]:
    proxy = proxy_to(address.host, address.port, settings.proxy, secure=address.secure)
    if proxy is None:
        return {}
    return {"https" if address.secure else "http": proxy.url_with_credentials}
