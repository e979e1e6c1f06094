"""The API server: what the provider's client says to it, over HTTP.

Requests are authorised by the rules of the Role in docs/kubernetes.md, and each rule
that was needed is remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from tests.integration.kubernetes.cluster.store import (
    RefusedError,
    selected,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import HTTPConnection, Request
    from starlette.websockets import WebSocket
    from tests.integration.kubernetes.cluster.store import Change, JsonObject, Store

TOKEN = "a-bearer-token"
SUBPROTOCOL = "v4.channel.k8s.io"
_KINDS = {
    ("", "events"): "Event",
    ("", "pods"): "Pod",
    ("", "services"): "Service",
    ("batch", "jobs"): "Job",
}
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
_CHUNK = 32 * 1024  # the buffer of a kubelet

Rule = tuple[str, str, str]  # group, resource, verb


class ApiServer:
    def __init__(self, store: Store, rules: set[Rule]) -> None:
        self._store = store
        self._rules = rules
        self.denied: set[Rule] = set()
        self.used: set[Rule] = set()
        self.tunnels: list[str] = []
        self.watches: list[str] = []
        self.is_closing = False
        one = "/namespaces/{namespace}/{resource}"
        self.app = Starlette(
            routes=[
                Route(f"{root}{one}{name}", self._answer, methods=methods)
                for root in ("/api/{version}", "/apis/{group}/{version}")
                for name, methods in (
                    ("", ["GET", "POST"]),
                    ("/{name}", ["GET", "PATCH", "DELETE"]),
                )
            ]
            + [WebSocketRoute(f"/api/v1{one}/{{name}}/portforward", self._port_forward)]
        )

    def forget(self) -> None:
        """Forget what was seen, and allow again what was denied."""
        for seen in (self.denied, self.used, self.tunnels, self.watches):
            seen.clear()

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._answer_as_allowed(request)
        except RefusedError as exc:
            return JSONResponse(exc.status, status_code=exc.code)

    async def _answer_as_allowed(self, request: Request) -> Response:
        where = request.path_params
        verb = _VERBS.get(request.method, "get" if "name" in where else "list")
        if "watch" in request.query_params:
            verb = "watch"
        group = where.get("group", "")
        self._authorize(request, (group, where["resource"], verb))
        kind = _KINDS[group, where["resource"]]
        if verb == "watch":
            return StreamingResponse(self._watch(request, kind))
        if verb == "list":
            return JSONResponse(self._list(request, kind))
        if verb == "create":
            item = await request.json()
            item["metadata"].setdefault("namespace", where["namespace"])
            return JSONResponse(self._store.create(item), status_code=201)
        item = self._store.find(kind, where["namespace"], where["name"])
        if verb == "patch":
            patched = _merged(item, await request.json())
            return JSONResponse(self._store.update(patched))
        if verb == "delete":
            self._delete(item)
        return JSONResponse(item)

    def _authorize(self, request: HTTPConnection, rule: Rule) -> None:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise RefusedError(401, "Unauthorized", "Unauthorized")
        if rule not in self._rules - self.denied:
            group, resource, verb = rule
            message = (
                f"{resource} is forbidden: User "
                f'"system:serviceaccount:rl:trainer" cannot {verb} resource '
                f'"{resource}" in API group "{group}" in the namespace "rl"'
            )
            raise RefusedError(403, "Forbidden", message)
        self.used.add(rule)

    def _delete(self, item: JsonObject) -> None:
        # Jobs wait for their Pods, as the cascade asks; Services have nobody.
        if item["kind"] == "Service":
            self._store.remove(item)
        else:
            self._store.mark_for_deletion(item)

    def _is_selected(self, request: Request, item: JsonObject) -> bool:
        asked = request.query_params
        return (
            item["metadata"]["namespace"] == request.path_params["namespace"]
            and selected(item, asked.get("labelSelector", ""), labels=True)
            and selected(item, asked.get("fieldSelector", ""), labels=False)
        )

    def _list(self, request: Request, kind: str) -> JsonObject:
        items = self._store.of_kind(kind)
        return {
            "kind": f"{kind}List",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(self._store.version)},
            "items": [item for item in items if self._is_selected(request, item)],
        }

    async def _watch(self, request: Request, kind: str) -> AsyncIterator[bytes]:
        seen = int(request.query_params["resourceVersion"])
        self.watches.append(kind)
        self._store.wake()
        while not self.is_closing:
            changed = self._store.changed
            if seen < self._store.forgotten:
                gone = RefusedError(410, "Expired", f"too old resource version: {seen}")
                yield _line("ERROR", gone.status)
                return
            for change in self._since(seen):
                seen = change.version
                item = change.object
                if item["kind"] == kind and self._is_selected(request, item):
                    yield _line(change.type, item)
            await changed.wait()

    def _since(self, version: int) -> list[Change]:
        return [change for change in self._store.changes if change.version > version]

    async def _port_forward(self, websocket: WebSocket) -> None:
        where = websocket.path_params
        try:
            # Servers from 1.35 on ask for both, older ones for the first.
            for verb in ("get", "create"):
                self._authorize(websocket, ("", "pods/portforward", verb))
            pod = self._store.find("Pod", where["namespace"], where["name"])
        except RefusedError:
            await websocket.close()
            return
        assert SUBPROTOCOL in websocket.scope["subprotocols"]
        await websocket.accept(SUBPROTOCOL)
        self.tunnels.append(where["name"])
        port = int(websocket.query_params["ports"])
        greeting = port.to_bytes(2, "little")
        for channel in (b"\x00", b"\x01"):
            await websocket.send_bytes(channel + greeting)
        await _lead(websocket, pod["status"]["podIP"], port)


async def _lead(websocket: WebSocket, host: str, port: int) -> None:
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError as exc:
        text = f"error forwarding port {port} to pod: {exc}"
        await websocket.send_bytes(b"\x01" + text.encode())
        await websocket.close()
        return
    back = asyncio.ensure_future(_lead_back(reader, websocket))
    there = asyncio.ensure_future(_lead_there(websocket, writer))
    await asyncio.wait((back, there), return_when=asyncio.FIRST_COMPLETED)
    for direction in (back, there):
        direction.cancel()
    await asyncio.gather(back, there, return_exceptions=True)
    writer.close()
    with contextlib.suppress(Exception):  # the peer may have closed first
        await websocket.close()


async def _lead_back(reader: asyncio.StreamReader, websocket: WebSocket) -> None:
    while chunk := await reader.read(_CHUNK):
        await websocket.send_bytes(b"\x00" + chunk)


async def _lead_there(websocket: WebSocket, writer: asyncio.StreamWriter) -> None:
    async for message in websocket.iter_bytes():
        assert message[0] == 0, "a client sends on the data channel only"
        writer.write(message[1:])
        await writer.drain()


def _line(kind: str, item: JsonObject) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def _merged(item: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(item, dict):
        return patch
    merged = copy.deepcopy(item)
    for name, value in patch.items():
        merged[name] = _merged(merged.get(name), value)
    return merged
