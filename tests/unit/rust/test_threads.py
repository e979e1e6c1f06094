"""Many threads in the extension at once, on objects of their own and on shared ones.

Threads are switched as often as Python allows and the garbage collector runs all the
time. Nothing may crash, hang, or mix one call's bytes with another's.
"""

from __future__ import annotations

import dataclasses
import enum
import gc
import json
import random
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec
import numpy as np
import pydantic
import pytest
from tests.support.wire import Result, Wire, observation

from openenv._rust import (
    Decoder,
    json_decode,
    json_encode,
    observation_reply,
    split_request,
)
from openenv.core._client.codec import shape_of
from openenv.errors import EncodeError

THREADS = 8
ROUNDS = 150


@pytest.fixture(autouse=True)
def restless():
    """Switch threads and collect garbage as often as possible."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20, 2, 2)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)


def together(work, count=THREADS):
    """Run ``work(0)``, ``work(1)``, … at once; raise what one of them raises."""
    start = threading.Barrier(count)

    def begin(number):
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int


class Model(pydantic.BaseModel):
    who: int
    text: str = ""


class Struct(msgspec.Struct):
    who: int
    text: str = ""


class Plain(dict):
    """Its conversion runs Python code, so that threads switch inside an encode."""

    def items(self):
        return iter([*super().items()])


def awkward(number):
    """Give a value whose encoding runs a lot of Python code."""
    return [
        Colour.RED,
        Point(number),
        Plain(who=number),
        Model(who=number),
        Struct(number),
        np.full(3, number),
        {number},
        b"%d" % number,
        {Colour.RED: number},
    ]


def test_own_values_are_encoded_and_decoded_as_if_alone():
    expected = [json_encode(awkward(number)) for number in range(THREADS)]

    def work(number):
        keys = {f"key{place % 7}{'x' * place}": place for place in range(50)}
        for _ in range(ROUNDS):
            assert expected[number] == json_encode(awkward(number))
            assert keys == json_decode(json_encode(keys))
            assert json.loads(expected[number]) == json_decode(expected[number])
            reply = observation_reply(awkward(number), number, done=False)
            assert b'"reward":%d,"done":false' % number in reply
            assert split_request(b'{"type":"step","data":%d}' % number)

    together(work)


class Shared:
    """A value that all threads change, in every way, while all encode it."""

    def __init__(self):
        self.table = {f"k{n}": [n, Colour.RED, Point(n)] for n in range(20)}
        self.items = [Point(n) for n in range(20)]
        self.root = {"table": self.table, "items": self.items, "members": {1, 2}}

    def change(self, chance):
        number = chance.randrange(40)
        kind = chance.randrange(6)
        if kind == 0:
            self.table[f"k{number}"] = [number, Colour.RED, Point(number)]
        elif kind == 1:
            self.table.pop(f"k{number}", None)
        elif kind == 2:
            self.items.append(Point(number))
        elif kind == 3:
            del self.items[: number // 8]
        elif kind == 4:
            self.items[:] = [Point(n) for n in range(number)]
        else:
            self.root["members"] = set(range(number))

    def check(self, decoded):
        assert {"table", "items", "members"} == decoded.keys()
        for key, (number, colour, point) in decoded["table"].items():
            assert f"k{number}" == key
            assert "red" == colour
            assert {"x": number} == point
        assert all(0 <= point["x"] < 40 for point in decoded["items"])


def test_what_changes_while_it_is_encoded_raises_or_is_whole():
    shared = Shared()

    def work(number):
        chance = random.Random(number)
        encoded, refusals = 0, []
        for _ in range(ROUNDS):
            shared.change(chance)
            try:
                text = json_encode(shared.root)
            except RuntimeError as error:
                refusals.append(str(error))
            else:
                shared.check(json.loads(text))
                encoded += 1
        return encoded, refusals

    results = together(work)

    assert sum(encoded for encoded, _ in results) > 0
    refusals = {text for _, refusals in results for text in refusals}
    assert {"a dict changed its size while it was encoded"} == refusals


def test_a_container_that_its_own_members_change_raises_or_is_whole():
    def own(number):
        holder = []

        class Meddler:
            def tolist(self):
                holder.clear()
                gc.collect(0)
                return [number]

        Meddler.__module__ = "numpy"
        holder.extend([Meddler(), "gone", {"also": "gone"}])
        assert f"[[{number}]]".encode() == json_encode(holder)

        table = {}

        class Replacer:
            def tolist(self):
                table.clear()
                table.update({f"n{place}": "new" for place in range(100)})
                return "old"

        Replacer.__module__ = "numpy"
        table.update(a=Replacer(), b=1)
        with pytest.raises(RuntimeError, match="changed its size"):
            json_encode(table)

    together(lambda number: [own(number) for _ in range(ROUNDS // 10)])


KINDS = [Model, Struct, dict]


def decoder_of(kind):
    shape = shape_of(kind)
    return Decoder.result(Result, shape.from_json, shape.from_objects, shape.lift)


def open_wire():
    wire = Wire(make_future=Future)
    wire.connect()
    wire.opened.result(0)
    return wire


def test_endpoints_of_their_own_share_their_decoders():
    decoders = [decoder_of(kind) for kind in KINDS]

    def work(number):
        wire = open_wire()
        for serial in range(ROUNDS // 5):
            kind, decoder = KINDS[serial % 3], decoders[serial % 3]
            payload = {"value": awkward(number), "serial": serial}
            future = wire.call(payload=payload, decoder=decoder)
            assert serial == wire.received[-1]["data"]["serial"]
            members = {"who": number, "text": f"{number}-{serial}"}
            wire.say(observation(members, reward=serial))
            assert Result(kind(**members), serial) == future.result(0)

    together(work)


class Table:
    """One endpoint that all threads use; its server echoes what it is asked."""

    def __init__(self):
        self.wire = open_wire()
        self.turn = threading.Lock()  # bytes must be read in the order they came in
        self.decoder = Decoder.result(Result, self._decode)
        self.inside = 0

    def _decode(self, text):
        """Call back into the endpoint that is being read."""
        endpoint = self.wire.endpoint
        assert endpoint.outstanding >= 0
        assert "open" == endpoint.state
        self.inside += 1
        return json_decode(text)

    def ask(self, payload):
        """Ask without the turn; what is to be written waits for it."""
        future, now = Future(), self.wire.now
        written = self.wire.endpoint.request(
            "step", payload, future, self.decoder, now + 60, now
        )
        return future, written

    def serve(self, written):
        """Hand bytes to the server and its answers to the endpoint, in order."""
        with self.turn:
            self.wire._to_server(written)
            while self.wire.received:
                message = self.wire.received.pop()
                self.wire.say(observation(message["data"]))


def test_one_endpoint_gives_every_thread_its_own_answers():
    table = Table()
    endpoint = table.wire.endpoint

    def work(number):
        chance = random.Random(number)
        asked = []
        for serial in range(ROUNDS):
            value = {"who": number, "serial": serial, "more": awkward(number)}
            if chance.randrange(10) == 0:
                with pytest.raises(EncodeError):
                    table.ask({**value, "bad": object()})
            future, written = table.ask(value)
            if chance.randrange(5) == 0:
                endpoint.abandon(future)
            else:
                asked.append((serial, future))
            table.serve(written)
            table.serve(endpoint.tick(table.wire.now))
        return asked

    for number, asked in enumerate(together(work)):
        for serial, future in asked:
            answer = future.result(0).observation
            assert (number, serial) == (answer["who"], answer["serial"])
            assert number == answer["more"][1]["x"]
    assert (0, 0) == (endpoint.outstanding, endpoint.owed)
    assert table.inside > ROUNDS
