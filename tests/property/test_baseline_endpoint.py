"""Rust's endpoint and its plain twin go through the same conversations alike.

A conversation is made of what a caller, a clock and a server can do, in any order; the
server's bytes are cut anywhere. After each act both endpoints are in the same state,
and in the end every call came to the same.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from concurrent.futures import Future

import msgspec
import pydantic
from hypothesis import given, settings, strategies as st
from tests.integration.hostile.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    PONG,
    TEXT,
    frame,
)
from tests.support.wire import Result, Wire

from openenv import _rust
from openenv.core import _baseline
from openenv.core._client.codec import shape_of
from openenv.errors import ConnectionClosed, OpenEnvError, RemoteProtocolError

LIMIT_BYTES = 2000


class Model(pydantic.BaseModel):
    x: object
    done: bool = False


class Struct(msgspec.Struct):
    x: object
    reward: float | None = None


@dataclasses.dataclass
class Plain:
    x: object
    metadata: object = None


KINDS = [dict, Model, Struct, Plain]

# --- what a server can say ---------------------------------------------------------

VALUES = [
    *("1", "null", "[1,2.50]", "NaN", "-Infinity", '"\\ud800"', "1e999", "9" * 30),
    *('{"__bytes__":"AA=="}', '{"a":1,"a":2}', '"é"', "9" * 5000, "{", "[]]"),
    "[" * 150 + "]" * 150,
    "[" * 250 + "]" * 250,
]
EXTS = [
    '{"ignored":["a","b"]}',
    '{"ignored":"a","exception":"KeyError"}',
    '{"nonfinite":[[["observation","x"],"nan"],[["reward"],"inf"],[["x",0],"-inf"]]}',
    '{"nonfinite":5}',
    '{"nonfinite":[[[],"nan"],[["observation","x",0],"inf"],[1],"x",[["done"],"?"]]}',
    "null",
    "[]",
]


@st.composite
def answers(draw):
    """Draw the text of a message: mostly an answer, regular or not."""
    value = draw(st.sampled_from(VALUES))
    observation = draw(
        st.sampled_from([f'{{"x":{value}}}', f' {{ "x" : {value} }} ', "{}", value])
    )
    kinds = ["observation"] * 4 + ["state", "mcp", "error", "error", "fly"]
    kind = draw(st.sampled_from(kinds))
    datas = [
        f'{{"observation":{observation},"reward":0.5,"done":true}}',
        f'{{"observation":{observation},"metadata":{{"k":{value}}}}}',
        f'{{"reward":{value},"done":{value},"y":1}}',
        '{"message":"no","code":"EXECUTION_ERROR"}',
        '{"message":"full","code":"CAPACITY_REACHED","max_sessions":1}',
    ]
    datas.append(observation)
    data = draw(st.sampled_from(datas))
    kind = f'"type":"{kind}"'
    data = f'"data": {data}'
    ext = f'"ext":{draw(st.sampled_from(EXTS))}'
    parts = draw(
        st.sampled_from(
            [[kind, data]] * 4
            + [[data, kind]]
            + [[kind, data, ext]] * 3
            + [[kind], [data], [kind, data, data], [kind, data, '"x":1']]
            + [['"type":[1]', data], ['"type":7', data, ext]]
        )
    )
    return "{" + ", ".join(parts) + "}"


def fragments(text, cut, between):
    payload = text.encode()
    cut %= len(payload) + 1
    return (
        frame(TEXT, payload[:cut], final=False)
        + between
        + frame(CONTINUATION, payload[cut:])
    )


controls = st.sampled_from(
    [b"", frame(PING), frame(PING, b"x" * 125), frame(PONG, b"y"), frame(PONG)]
)
messages = st.builds(
    fragments, answers(), st.integers(0, 2000), controls
) | answers().map(lambda text: frame(TEXT, text.encode()))
ENDS = [
    frame(CLOSE),
    frame(CLOSE, b"\x03\xe8"),
    frame(CLOSE, b"\x03\xf3full \xc3\xa9"),
    frame(CLOSE, b"\x0b\xb8"),
]
# `websockets` does not look at a length's form, and names a top bit too big a message.
FAULTS = [
    frame(TEXT, b"{}", reserved=4),
    frame(0x3, b"{}"),
    frame(TEXT, b"{}", key=KEY),
    frame(PING, bytes(126)),
    frame(PING, final=False),
    frame(CONTINUATION, b"{}"),
    frame(TEXT, b"{", final=False) + frame(TEXT, b"}"),
    frame(CLOSE, b"\x03"),
    frame(CLOSE, b"\x03\xed"),
    frame(CLOSE, b"\x03\xe8\xff"),
    frame(TEXT, b'"\xff"'),
    frame(TEXT, b'"\xe2\x82', final=False) + frame(CONTINUATION, b'"'),
    frame(BINARY, declared=LIMIT_BYTES + 1),
    frame(BINARY, b"{}", final=False) + frame(CONTINUATION, declared=LIMIT_BYTES),
]
said = st.lists(
    messages | controls | st.sampled_from(ENDS) | st.sampled_from(FAULTS), max_size=4
).map(b"".join)
heard = messages | said

# --- what can be done to an endpoint -----------------------------------------------

payloads = st.sampled_from(
    [{}, {"a": 1}, {"a": float("nan"), None: "é"}, {"a": object()}, {"a": "x" * 99}, 1]
)
cuts = st.lists(st.integers(0, 4000), max_size=5)
calls = st.tuples(
    st.just("call"),
    st.sampled_from(["step"] * 3 + ["reset", "state", "mcp"]),
    payloads,
    st.sampled_from(KINDS),
    st.sampled_from([0.5, 5.0, float("inf")]),
)
acts = st.one_of(
    calls,
    calls,
    st.tuples(st.just("hear"), messages, cuts),
    st.tuples(st.just("hear"), messages, cuts),
    st.tuples(st.just("hear"), heard, cuts),
    st.tuples(st.just("tick"), st.sampled_from([0.5, 1.0, 5.0, 20.0])),
    st.tuples(st.just("abandon"), st.integers(0, 5)),
    st.tuples(st.just("take_ignored")),
    st.tuples(st.just("flush")),
    st.tuples(st.sampled_from(["close", "lost"])),
)
upgrades = st.fixed_dictionaries(
    {
        "headers": st.just([]) | st.just([("OpenEnv-Max-Message-Bytes", " 60 ")]),
        "refuse": st.sampled_from([None] * 9 + [(503, "busy")]),
    }
)


class Conversation:
    """Go through acts with one endpoint, and log what is seen after each.

    Futures are no event loop's: what comes of a call is there at once.
    """

    def __init__(self, twin, upgrade):
        self.twin = twin
        self.wire = Wire(
            make_future=Future,
            make_endpoint=twin.ClientEndpoint,
            max_message_bytes=LIMIT_BYTES,
            ping_interval_s=20.0,
            ping_timeout_s=10.0,
        )
        self.futures = []
        self.log = []
        self.wire.connect(upgrade["headers"], upgrade["refuse"])

    def play(self, acts):
        for name, *parts in acts:
            told = getattr(self, name)(*parts)
            self.log.append((name, told, *self.seen()))
        self.log += [shown(future) for future in self.futures]
        self.log += [shown(self.wire.opened), self.wire.received]
        return self.log

    def seen(self):
        endpoint = self.wire.endpoint
        return (
            endpoint.state,
            endpoint.should_disconnect,
            endpoint.owed,
            endpoint.outstanding,
            endpoint.next_timeout(),
            endpoint.close_code,
            named(endpoint.closed_error),
        )

    def call(self, op, payload, kind, timeout_s):
        shape = shape_of(kind)
        decoder = {
            "mcp": self.twin.Decoder.data(),
            "state": self.twin.Decoder.state(shape.from_json, shape.from_objects),
        }.get(op) or self.twin.Decoder.result(
            Result, shape.from_json, shape.from_objects, shape.lift
        )
        try:
            self.futures.append(self.wire.call(op, payload, decoder, timeout_s))
        except OpenEnvError as error:
            return named(error)
        return None

    def hear(self, data, cuts):
        places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        for start, end in itertools.pairwise(places):
            self.wire.hear(data[start:end])

    def tick(self, seconds):
        self.wire.tick(seconds)

    def abandon(self, number):
        if number < len(self.futures):
            self.wire.endpoint.abandon(self.futures[number])

    def take_ignored(self):
        return self.wire.endpoint.take_ignored()

    def flush(self):
        self.wire.flush()

    def close(self):
        self.wire.endpoint.close(1000, self.wire.now)

    def lost(self):
        self.wire.endpoint.lost()


def shown(future):
    if not future.done():
        return "waits"
    error = future.exception()
    return repr(future.result()) if error is None else named(error)


def named(error):
    """Give an error's type and words, unless those are of the RFC's library."""
    if isinstance(error, RemoteProtocolError) and "answer" not in str(error):
        return type(error)
    code = error.code if isinstance(error, ConnectionClosed) else None
    return type(error), str(error), code


@settings(deadline=None, max_examples=300)
@given(upgrades, st.lists(acts, max_size=12))
def test_every_conversation_goes_alike(upgrade, acts):
    expected = Conversation(_baseline, upgrade).play(acts)

    assert expected == Conversation(_rust, upgrade).play(acts)


@settings(deadline=None)
@given(
    messages, cuts, st.sampled_from(KINDS), st.sampled_from(["step", "state", "mcp"])
)
def test_every_answer_is_decoded_alike(message, cuts, kind, op):
    acts = [("call", op, {}, kind, 5.0), ("hear", message, cuts)]
    upgrade = {"headers": [], "refuse": None}
    expected = Conversation(_baseline, upgrade).play(acts)

    assert expected == Conversation(_rust, upgrade).play(acts)


HEADS = [
    b"HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\nno",
    b"HTTP/1.1 403 \r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.0 502 Bad Gateway\nX: y\n\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 abc\r\n\r\n",
    b"SSH-2.0-OpenSSH\r\n",
    b"HTTP/1.1 101 Switch",
    b"HTTP/1.1 101 S\r\n" + b"X: y\r\n" * 20_000,
]


@given(st.sampled_from(HEADS), st.lists(st.integers(0, 200), max_size=4))
def test_a_wrong_upgrade_fails_alike(head, cuts):
    def end(twin):
        endpoint = twin.ClientEndpoint(
            "h", "/ws", [], max_message_bytes=1, ping_interval_s=1, ping_timeout_s=1
        )
        opened = Future()
        endpoint.connect(opened, 10.0, 0.0)
        places = sorted({0, len(head), *(cut % (len(head) + 1) for cut in cuts)})
        for start, stop in itertools.pairwise(places):
            endpoint.receive(head[start:stop], 1.0)
        states = [endpoint.state]
        endpoint.tick(10.0)
        error = opened.exception(0)
        return states, endpoint.state, type(error), error.status, endpoint.close_code

    assert end(_baseline) == end(_rust)


def test_json_that_is_written_is_what_is_sent():
    sent = []
    for twin in (_baseline, _rust):
        talk = Conversation(twin, {"headers": [], "refuse": None})
        talk.call("step", {"a": [float("inf"), None]}, dict, 5.0)
        raw = twin.Raw(b'{"id": 1}')
        talk.wire.call("mcp", raw, twin.Decoder.data())
        sent.append(json.dumps(talk.wire.received))

    assert sent[0] == sent[1]
