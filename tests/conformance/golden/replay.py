"""Play a recorded exchange against a server and write down what comes back.

A plain exchange sends each frame and waits for one reply, until the server closes.
Exchanges that need more (a held connection, an abort, an idle gap) have a scenario
of their own, named by the transcript.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
import time
from typing import TYPE_CHECKING, Any

import httpx
from tests.conformance.golden.transcripts import Answer, Transcript
from tests.support.processes import wait_until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPLY_TIMEOUT_S = 20.0
FREE_SLOT_TIMEOUT_S = 5.0
IDLE_S = 8.0
HELD_TIMEOUT_S = 1.0  # of the application `reap`
SESSION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|<sid>")
REFUSAL = "Server at capacity"
RESET = '{"type": "reset", "data": {}}'
STATE = '{"type": "state"}'
LIST_TOOLS = '{"type": "step", "data": {"type": "list_tools"}}'


class Replayer:
    """Plays transcripts against the server that listens on a loopback port."""

    def __init__(self, port: int) -> None:
        self._http_url = f"http://127.0.0.1:{port}"
        self._ws_url = f"ws://127.0.0.1:{port}"

    def play(self, transcript: Transcript) -> Answer:
        """Play one exchange; a slot that the exchange before still holds is awaited."""
        if REFUSAL in str(transcript.answer.received):
            return self._play_once(transcript)

        def admitted() -> Answer | None:
            answer = self._play_once(transcript)
            return None if REFUSAL in str(answer.received) else answer

        return wait_until(admitted, FREE_SLOT_TIMEOUT_S, lambda: "no slot was freed")

    def _play_once(self, transcript: Transcript) -> Answer:
        scenario = SCENARIOS.get(transcript.name)
        if scenario is not None:
            return scenario(self, transcript)
        if SESSION_ID.search(f"{transcript.path} {transcript.sent}"):
            with self.held_session() as session_id:
                return self._plain(within(transcript, session_id))
        return self._plain(transcript)

    def _plain(self, transcript: Transcript) -> Answer:
        if transcript.transport == "http":
            return self._request(transcript)
        return self._converse(transcript)

    def _request(self, transcript: Transcript) -> Answer:
        assert transcript.method
        form = transcript.name.endswith("form_content_type")
        kind = "application/x-www-form-urlencoded" if form else "application/json"
        with httpx.Client(trust_env=False, timeout=REPLY_TIMEOUT_S) as client:
            response = client.request(
                transcript.method,
                self._http_url + transcript.path,
                content=transcript.sent,
                headers={"content-type": kind} if transcript.sent else {},
            )
        return Answer(
            received=response.text,
            http_status=response.status_code,
            content_type=response.headers.get("content-type"),
        )

    def _openapi(self, transcript: Transcript) -> Answer:
        answer = self._request(transcript)
        document = json.loads(answer.received)
        return Answer(openapi_digest(document), answer.http_status, answer.content_type)

    def _converse(self, transcript: Transcript, **connect_options: Any) -> Answer:
        try:
            with self.connection(transcript.path, **connect_options) as socket:
                return converse(socket, [unfold(item) for item in transcript.sent])
        except InvalidStatus as refusal:
            return Answer([None], http_status=refusal.response.status_code)

    @contextlib.contextmanager
    def connection(
        self, path: str = "/ws", **options: Any
    ) -> Iterator[ClientConnection]:
        """Open a WebSocket; it is closed with 1000 unless the server closed it."""
        settings = {"max_size": None, "proxy": None, "ping_interval": None} | options
        with connect(self._ws_url + path, **settings) as socket:
            yield socket

    @contextlib.contextmanager
    def session(self) -> Iterator[ClientConnection]:
        """Open a connection and reset, once there is a slot."""

        def admitted() -> ClientConnection | None:
            socket = stack.enter_context(self.connection())
            return None if REFUSAL in str(exchange(socket, RESET)) else socket

        with contextlib.ExitStack() as stack:
            yield wait_until(admitted, FREE_SLOT_TIMEOUT_S)

    @contextlib.contextmanager
    def held_session(self) -> Iterator[str]:
        """Open a session over HTTP, and close it unless that has been done."""
        created = self.rpc("openenv/session/create")
        session_id = created["result"]["session_id"]
        try:
            yield session_id
        finally:
            self.rpc("openenv/session/close", session_id=session_id)

    @contextlib.contextmanager
    def joined(self, session_id: str) -> Iterator[None]:
        """Attach a connection to a session that is held over HTTP."""
        with self.connection(f"/ws?session_id={session_id}") as socket:
            exchange(socket, RESET)
            yield

    def rpc(self, method: str, **params: Any) -> dict[str, Any]:
        """Make one JSON-RPC request over HTTP."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        with httpx.Client(trust_env=False, timeout=REPLY_TIMEOUT_S) as client:
            return client.post(self._http_url + "/mcp", json=request).json()

    # Scenarios, in the order of the recording.

    def _create_session(self, transcript: Transcript) -> Answer:
        answer = self._request(transcript)
        session_id = json.loads(answer.received)["result"]["session_id"]
        self.rpc("openenv/session/close", session_id=session_id)
        return answer

    def _close_while_attached(self, transcript: Transcript) -> Answer:
        with self.held_session() as session_id, self.joined(session_id):
            return self._request(within(transcript, session_id))

    def _after_the_detach(self, transcript: Transcript) -> Answer:
        with self.held_session() as session_id:
            with self.joined(session_id):
                self.rpc("openenv/session/close", session_id=session_id)

            def detached() -> Answer | None:
                answer = self._request(within(transcript, session_id))
                return answer if "error" in answer.received else None

            return wait_until(detached, FREE_SLOT_TIMEOUT_S)

    def _close_again(self, transcript: Transcript) -> Answer:
        with self.held_session() as session_id:
            self.rpc("openenv/session/close", session_id=session_id)
            return self._request(within(transcript, session_id))

    def _held_and_idle(self, transcript: Transcript) -> Answer:
        def expired() -> Answer | None:
            time.sleep(next(gaps_s))  # to ask is to use the session
            answer = self._request(within(transcript, session_id))
            return answer if "error" in answer.received else None

        gaps_s = itertools.chain([1.5 * HELD_TIMEOUT_S], itertools.repeat(IDLE_S))
        with self.held_session() as session_id:
            return wait_until(expired, 3 * IDLE_S)  # upstream looks every few seconds

    def _beside_a_held_connection(self, transcript: Transcript) -> Answer:
        with self.session():
            if transcript.transport == "http":
                return self._request(transcript)
            return self._converse(transcript)

    def _with_a_small_limit(self, transcript: Transcript) -> Answer:
        return self._converse(transcript, max_size=1024 * 1024)

    def _after_an_idle_gap(self, _: Transcript) -> Answer:
        with self.session() as socket:
            with contextlib.suppress(TimeoutError):
                notice = receive(socket, IDLE_S)
                return Answer([notice, *rest(socket)], 101, None, *closing(socket))
            return converse(socket, [STATE, LIST_TOOLS])  # recorded as prose

    def _pipelined(self, transcript: Transcript) -> Answer:
        with self.connection() as socket:
            for message in transcript.sent:
                socket.send(message)
            received = [receive(socket) for _ in transcript.sent]
            socket.close()
            return Answer(received, 101, None, *closing(socket))

    def _fragmented(self, transcript: Transcript) -> Answer:
        with self.connection() as socket:
            socket.send(transcript.sent[0].split("|"))
            received = [receive(socket)]
            socket.close()
            return Answer(received, 101, None, *closing(socket))

    def _handshake_headers(self, transcript: Transcript) -> Answer:
        with self.connection() as socket:
            assert socket.response
            headers = socket.response.headers
            names = transcript.answer.received[0]
            received = [{name: headers[name] for name in names if name in headers}]
            socket.close()
            return Answer(received, 101, None, *closing(socket))

    def _foreign_origin(self, transcript: Transcript) -> Answer:
        headers = dict(line.split(": ", 1) for line in transcript.sent[:2])
        with self.connection(additional_headers=headers) as socket:
            return converse(socket, [STATE])

    def _abort(self, transcript: Transcript) -> Answer:
        assert transcript.sent == [RESET, "<TCP abort>"]
        with self.session() as socket:
            abort(socket)
        self._wait_for_a_slot()
        return Answer(["slot free again after N s"], 101)

    def _abort_during_a_step(self, transcript: Transcript) -> Answer:
        with self.session() as socket:
            socket.send(transcript.sent[1])
            health = httpx.get(self._http_url + "/health", trust_env=False)
            abort(socket)
        aborted = time.monotonic()
        refusal = self._first_frame()
        self._wait_for_a_slot()
        assert health.elapsed.total_seconds() < 1.0  # the step takes three
        assert time.monotonic() - aborted < 4.0
        received = [
            "/health answered in N s while step ran",
            f"first reconnect: {refusal}",
            "slot free again after N s (step takes 3 s)",
        ]
        return Answer(received, 101)

    def _first_frame(self) -> str | bytes:
        with self.connection() as socket:
            return exchange(socket, STATE)

    def _wait_for_a_slot(self) -> None:
        with self.session():
            pass


SCENARIOS: dict[str, Callable[[Replayer, Transcript], Answer]] = {
    "capacity.second_connection_no_send": Replayer._beside_a_held_connection,
    "capacity.http_reset_not_counted": Replayer._beside_a_held_connection,
    "large.server_to_client_20MB_client_limit_1MB": Replayer._with_a_small_limit,
    "capacity.mcp_ws": Replayer._beside_a_held_connection,
    "capacity.http_session_create": Replayer._beside_a_held_connection,
    "sync1.openapi": Replayer._openapi,
    "mcp.openapi": Replayer._openapi,
    "prod.openapi": Replayer._openapi,
    "mcp.http.session_create": Replayer._create_session,
    "mcp.http.session_create2": Replayer._create_session,
    "mcp.http.session_close_while_attached": Replayer._close_while_attached,
    "mcp.http.session_after_detach": Replayer._after_the_detach,
    "mcp.http.session_close_again": Replayer._close_again,
    "reap.session_create": Replayer._create_session,
    "reap.after_8s_idle": Replayer._held_and_idle,
    "reap.plain_ws_idle_8s": Replayer._after_an_idle_gap,
    "pipelined_frames_answered_in_order": Replayer._pipelined,
    "fragmented_text_message": Replayer._fragmented,
    "handshake_headers": Replayer._handshake_headers,
    "handshake_foreign_origin_and_auth_header": Replayer._foreign_origin,
    "abrupt_tcp_abort_frees_slot": Replayer._abort,
    "disconnect_during_sync_step": Replayer._abort_during_a_step,
}


def within(transcript: Transcript, session_id: str) -> Transcript:
    """Put a session that exists in the place of the recorded one."""
    path = SESSION_ID.sub(session_id, transcript.path)
    sent = transcript.sent
    if isinstance(sent, str):
        sent = SESSION_ID.sub(session_id, sent)
    return dataclasses.replace(transcript, path=path, sent=sent)


def converse(socket: ClientConnection, messages: list[str | bytes]) -> Answer:
    """Send each message and wait for its reply, until the server closes."""
    received: list[Any] = []
    server_closed_first = False
    try:
        received.extend(exchange(socket, message) for message in messages)
        if not messages:
            received.extend(receive(socket) for _ in range(2))
    except ConnectionClosed:
        server_closed_first = True
    socket.close()
    return Answer(received, 101, None, *closing(socket), server_closed_first)


def exchange(socket: ClientConnection, message: str | bytes) -> str | bytes:
    """Send one message and return the next one that arrives.

    A server may refuse and close before the message is sent; what it said is read.
    """
    with contextlib.suppress(ConnectionClosed):
        socket.send(message)
    return receive(socket)


def receive(
    socket: ClientConnection, timeout_s: float = REPLY_TIMEOUT_S
) -> str | bytes:
    """Return the next message, text or binary, exactly as it came."""
    return socket.recv(timeout=timeout_s)


def rest(socket: ClientConnection) -> list[Any]:
    """Everything that arrives until the server closes."""
    received = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            received.append(receive(socket))
    return received


def closing(socket: ClientConnection) -> tuple[int | None, str | None]:
    """The code and reason that ended the connection."""
    return socket.close_code, socket.close_reason


def abort(socket: ClientConnection) -> None:
    """Vanish: end the TCP connection without a closing handshake."""
    socket.close_socket()


def unfold(item: Any) -> str | bytes:
    """The message that a recorded `sent` entry stands for."""
    if isinstance(item, str):
        return item
    if "hex" in item:
        return bytes.fromhex(item["hex"])
    head, tail = item["head"], item["tail"]
    return head + head[-1] * (item["text_len"] - len(head) - len(tail)) + tail


def openapi_digest(document: dict[str, Any]) -> dict[str, Any]:
    """The parts of an OpenAPI document that were recorded."""
    paths = document["paths"]
    info = {key: text for key, text in document["info"].items() if key != "description"}
    return {
        "info": info,
        "openapi": document["openapi"],
        "paths": {path: list(methods) for path, methods in paths.items()},
        "tags": document["tags"],
        "component_schemas": sorted(document["components"]["schemas"]),
        "operations": {
            path: {name: operation_digest(op) for name, op in methods.items()}
            for path, methods in paths.items()
        },
    }


def operation_digest(operation: dict[str, Any]) -> dict[str, Any]:
    """The recorded parts of one operation."""
    return {
        "operationId": operation["operationId"],
        "tags": operation.get("tags"),
        "responses": sorted(operation["responses"]),
        "summary": operation["summary"],
    }
