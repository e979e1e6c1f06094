"""One end of a connection in the hands of a test, without a socket.

The other side is ``websockets``' own sans-IO server, so that two implementations of
RFC 6455 check each other.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json

from websockets.frames import Opcode
from websockets.server import ServerProtocol

from openenv.core._native import native

ClientEndpoint = native.ClientEndpoint
Decoder = native.Decoder


@dataclasses.dataclass
class Result:
    observation: object
    reward: object = None
    done: bool = False
    metadata: object = None


RESULT = Decoder.result(Result)


class Wire:
    """One endpoint, its server in memory, and a clock that is moved by hand.

    Futures are those of the running loop, or what ``make_future`` gives.
    """

    def __init__(
        self, headers=(), make_future=None, make_endpoint=ClientEndpoint, **options
    ):
        options = {
            "max_message_bytes": 1 << 20,
            "ping_interval_s": None,
            "ping_timeout_s": None,
        } | options
        self.endpoint = make_endpoint("host", "/ws?x=1", list(headers), **options)
        self.server = ServerProtocol()
        self.now = 100.0
        self.make_future = make_future or asyncio.get_running_loop().create_future
        self.opened = self.make_future()
        self.received = []

    def connect(self, answer_headers=(), refuse=None):
        head = self.endpoint.connect(self.opened, self.now + 10, self.now)
        self.server.receive_data(head)
        [request] = self.server.events_received()
        self.request = request
        if refuse:
            self.server.send_response(self.server.reject(*refuse))
        else:
            response = self.server.accept(request)
            for name, value in answer_headers:
                response.headers[name] = value
            self.server.send_response(response)
        self.flush()

    def call(self, op="step", payload=None, decoder=RESULT, timeout_s=5.0):
        future = self.make_future()
        written = self.endpoint.request(
            op, payload, future, decoder, self.now + timeout_s, self.now
        )
        self._to_server(written)
        return future

    def say(self, message):
        text = message if isinstance(message, str) else json.dumps(message)
        self.server.send_text(text.encode())
        self.flush()

    def flush(self):
        for data in self.server.data_to_send():
            if data:
                self.hear(data)

    def hear(self, data):
        self._to_server(self.endpoint.receive(data, self.now))

    def tick(self, seconds):
        self.now += seconds
        self._to_server(self.endpoint.tick(self.now))

    def _to_server(self, data):
        if data:
            self.server.receive_data(data)
            for event in self.server.events_received():
                if getattr(event, "opcode", None) is Opcode.TEXT:
                    self.received.append(json.loads(event.data))


def observation(value, **members):
    data = {"observation": value, "reward": None, "done": False} | members
    return {"type": "observation", "data": data}
