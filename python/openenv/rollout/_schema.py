"""Read the action schema of a running server: `GET /schema`."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import urllib.request
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from openenv.rollout.errors import RolloutError

_TIMEOUT_S: Final = 30.0
_SCHEMES: Final = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


async def fetch_action_schema(base_url: str) -> dict[str, object]:
    """Read the JSON schema of a server's action.

    Args:
        base_url: the server's URL as clients take it (http, https, ws, wss or bare).

    Raises:
        RolloutError: there is no answer, or not such an answer.
    """
    url = schema_url(base_url)
    try:
        answer = json.loads(await asyncio.to_thread(_read, url))
    except (OSError, ValueError) as error:
        message = f"cannot read the action's schema from {url}: {error}"
        raise RolloutError(message) from error
    schema = answer.get("action") if isinstance(answer, dict) else None
    if not isinstance(schema, dict):
        message = f"{url} tells no action schema; give --policy"
        raise RolloutError(message)
    return schema


def schema_url(base_url: str) -> str:
    """Tell where a server of this base URL has its `/schema`."""
    stripped = base_url.strip()
    parts = urlsplit(stripped if "://" in stripped else f"http://{stripped}")
    scheme = _SCHEMES.get(parts.scheme.lower(), parts.scheme)
    path = parts.path.rstrip("/").removesuffix("/ws").rstrip("/")
    return urlunsplit((scheme, parts.netloc, f"{path}/schema", parts.query, ""))


def _read(url: str) -> bytes:
    # A proxy cannot reach this machine's own servers.
    proxies: dict[str, str] | None = (
        {} if _is_loopback(urlsplit(url).hostname) else None
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
    with opener.open(url, timeout=_TIMEOUT_S) as response:
        body: bytes = response.read()
    return body


def _is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
