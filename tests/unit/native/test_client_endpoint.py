"""The boundary of the client's machine: bytes in, futures resolved, bytes out."""

from __future__ import annotations

import asyncio
import gc
import weakref

import msgspec
import pydantic
import pytest
from tests.support.wire import Result, Wire, observation

from openenv.core._native import native
from openenv.errors import (
    CapacityReached,
    ConnectFailed,
    ConnectionClosed,
    EncodeError,
    ExecutionFailed,
    LimitExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    RequestTimeout,
)

ClientEndpoint = native.ClientEndpoint
Decoder = native.Decoder
Raw = native.Raw


@pytest.fixture
def wire():
    """Be synchronous, but inside a running loop, since futures need one."""

    async def make(**options):
        wire = Wire(**options)
        wire.connect()
        await wire.opened
        return wire

    return make


async def test_the_upgrade_carries_target_and_headers():
    wire = Wire(headers=[("X-Key", "secret")])
    wire.connect(answer_headers=[("OpenEnv-Max-Message-Bytes", "1000")])
    await wire.opened

    assert "/ws?x=1" == wire.request.path
    assert "secret" == wire.request.headers["X-Key"]
    assert "open" == wire.endpoint.state
    assert 1000 == wire.endpoint.peer_max_message_bytes
    assert ("openenv-max-message-bytes", "1000") in wire.endpoint.response_headers


async def test_a_refused_upgrade_tells_its_status():
    wire = Wire()
    wire.connect(refuse=(503, "busy"))

    with pytest.raises(ConnectFailed) as caught:
        await wire.opened
    assert 503 == caught.value.status
    assert wire.endpoint.should_disconnect


@pytest.mark.parametrize("header", [("A", "b\r\nEvil: 1"), ("Upgrade", "x"), ("", "x")])
def test_a_header_that_cannot_be_sent_is_refused(header):
    with pytest.raises(LocalProtocolError):
        ClientEndpoint(
            "h",
            "/",
            [header],
            max_message_bytes=1,
            ping_interval_s=None,
            ping_timeout_s=None,
        )


async def test_a_step_is_answered(wire):
    wire = await wire()
    future = wire.call(payload={"message": "é"})
    assert [{"type": "step", "data": {"message": "é"}}] == wire.received

    wire.say(observation({"x": 1}, reward=0.5, done=True, metadata={"k": 1}))

    assert Result({"x": 1}, 0.5, True, {"k": 1}) == await future


async def test_a_request_is_spelled_as_upstreams_client_spells_it(wire):
    wire = await wire()
    wire.call(payload={"x": [float("nan"), float("inf"), float("-inf")], None: 1})

    [sent] = wire.received
    assert "[nan, inf, -inf]" == str(sent["data"]["x"])
    assert 1 == sent["data"]["null"]


async def test_finished_json_and_state_need_no_encoding(wire):
    wire = await wire()
    wire.call("reset", Raw(b'{"seed": 1}'))
    wire.say(observation({}))
    future = wire.call("state", None, Decoder.state())
    wire.say({"type": "state", "data": {"step_count": 2}})

    assert [
        {"type": "reset", "data": {"seed": 1}},
        {"type": "state"},
    ] == wire.received
    assert {"step_count": 2} == await future


async def test_calls_are_sent_one_at_a_time_and_answered_in_order(wire):
    wire = await wire()
    futures = [wire.call(payload={"n": n}) for n in range(3)]
    for n in range(3):
        assert n + 1 == len(wire.received)
        assert 3 - n == wire.endpoint.outstanding
        wire.say(observation({"n": n}))

    assert [{"n": 0}, {"n": 1}, {"n": 2}] == [(await f).observation for f in futures]


async def test_a_timed_out_step_never_answers_the_next_call(wire):
    wire = await wire()
    slow = wire.call(payload={"n": 1}, timeout_s=1.0)
    wire.tick(1.0)
    with pytest.raises(RequestTimeout, match="step was not answered within 1 s"):
        await slow
    assert 1 == wire.endpoint.owed
    following = wire.call(payload={"n": 2})

    wire.say(observation({"n": 1}))
    assert not following.done()
    wire.say(observation({"n": 2}))

    assert {"n": 2} == (await following).observation
    assert 0 == wire.endpoint.owed


async def test_an_abandoned_step_in_the_queue_is_never_sent(wire):
    wire = await wire()
    first = wire.call(payload={"n": 1})
    second = wire.call(payload={"n": 2})
    third = wire.call(payload={"n": 3})
    second.cancel()
    wire.endpoint.abandon(second)
    wire.endpoint.abandon(second)  # again: nothing to do

    wire.say(observation({"n": 1}))
    wire.say(observation({"n": 3}))

    assert [1, 3] == [m["data"]["n"] for m in wire.received]
    assert [1, 3] == [(await f).observation["n"] for f in (first, third)]


async def test_a_cancelled_future_swallows_its_answer(wire):
    wire = await wire()
    future = wire.call(payload={})
    future.cancel()

    wire.say(observation({}))

    assert future.cancelled()


async def test_errors_of_the_server_are_typed(wire):
    wire = await wire()
    future = wire.call(payload={})
    wire.say(
        {
            "type": "error",
            "data": {"message": "boom", "code": "EXECUTION_ERROR"},
            "ext": {"exception": "ValueError"},
        }
    )

    with pytest.raises(ExecutionFailed) as caught:
        await future
    assert "Server error: boom (code: EXECUTION_ERROR)" == str(caught.value)
    assert "ValueError" == caught.value.exception


async def test_an_error_before_any_request_is_kept_as_the_refusal(wire):
    wire = await wire()
    wire.say(
        {
            "type": "error",
            "data": {
                "message": "full",
                "code": "CAPACITY_REACHED",
                "active_sessions": 1,
                "max_sessions": 1,
            },
        }
    )

    assert isinstance(wire.endpoint.closed_error, CapacityReached)
    with pytest.raises(CapacityReached) as caught:
        wire.call(payload={})
    assert (1, 1) == (caught.value.active_sessions, caught.value.max_sessions)


async def test_what_json_cannot_say_is_put_back(wire):
    wire = await wire()
    future = wire.call("reset", {"q": 1})
    reply = observation({"v": [None, 1], "b": {"__bytes__": "AP8="}})
    reply["ext"] = {
        "nonfinite": [
            [["observation", "v", 0], "-inf"],
            [["reward"], "inf"],
            [["nowhere", 7, "x"], "nan"],
            "nonsense",
        ],
        "ignored": ["q"],
    }
    wire.say(reply)

    expected = Result({"v": [float("-inf"), 1], "b": b"\x00\xff"}, float("inf"))
    assert expected == await future
    assert ["q"] == wire.endpoint.take_ignored()
    assert [] == wire.endpoint.take_ignored()


class Seen(pydantic.BaseModel, extra="forbid"):
    x: float
    done: bool = False
    reward: float | None = None


class SeenStruct(msgspec.Struct, forbid_unknown_fields=True):
    x: float
    reward: float | None = None


def seen_decoder():
    return Decoder.result(
        Result,
        Seen.__pydantic_validator__.validate_json,
        Seen.__pydantic_validator__.validate_python,
        ("done", "reward"),
    )


async def test_an_observation_is_decoded_by_its_type_with_lifted_members(wire):
    wire = await wire()
    future = wire.call(payload={}, decoder=seen_decoder())
    wire.say(observation({"x": 1}, reward=2, done=True))
    assert Seen(x=1, done=True, reward=2) == (await future).observation

    decoder = Decoder.result(
        Result, msgspec.json.Decoder(SeenStruct).decode, None, ["reward"]
    )
    future = wire.call(payload={}, decoder=decoder)
    wire.say(observation({"x": 1}, reward=2, done=True))
    assert SeenStruct(1, 2) == (await future).observation


async def test_the_slow_way_decodes_to_the_same_type(wire):
    wire = await wire()
    future = wire.call(payload={}, decoder=seen_decoder())
    reply = observation({"x": None}, reward=2, done=True)
    reply["ext"] = {"nonfinite": [[["observation", "x"], "inf"]]}
    wire.say(reply)

    found = (await future).observation
    assert Seen(x=float("inf"), done=True, reward=2) == found


async def test_an_observation_of_another_shape_raises_at_its_caller(wire):
    wire = await wire()
    future = wire.call(payload={}, decoder=seen_decoder())
    wire.say(observation({"y": 1}))
    with pytest.raises(pydantic.ValidationError):
        await future

    future = wire.call(payload={})
    wire.say({"type": "observation", "data": [1]})
    with pytest.raises(RemoteProtocolError, match="not a JSON object"):
        await future
    assert "open" == wire.endpoint.state


DEEP = "[" * 100_000 + "]" * 100_000
LONG = "9" * 5000


@pytest.mark.parametrize(
    "answer",
    [
        "nope",
        "[1]",
        "",
        '{"type":"error","data":null}',
        '{"type":"error","data":[1]}',
        '{"type":"error","data":{"message":' + DEEP + "}}",
        '{"type":"observation","data":{"observation":' + DEEP + "}}",
        '{"type":"observation","data":{"reward":' + LONG + "}}",
        '{"type":"observation","data":{"observation":{"a":' + LONG + "}}}",
    ],
    ids=range(9),
)
async def test_an_answer_that_cannot_be_read_belongs_to_its_caller(wire, answer):
    wire = await wire()
    future = wire.call(payload={})
    wire.say(answer)

    with pytest.raises(RemoteProtocolError, match="answer is not"):
        await future


@pytest.mark.parametrize(
    "answer",
    [
        '{"type":"state","data":{"observation":{}}}',
        '{"type":"notice","data":{"observation":{}}}',
        '{"data":{"observation":{}}}',
        '{"type":7,"data":{"observation":{"v":NaN}}}',
        '{"type":[1],"data":{"observation":{}}}',
    ],
)
async def test_an_answer_of_another_kind_is_not_taken_for_the_steps(wire, answer):
    wire = await wire()
    future = wire.call(payload={})
    wire.say(answer)

    with pytest.raises(RemoteProtocolError, match="answer to step has the type"):
        await future


async def test_a_payload_without_a_form_sends_nothing(wire):
    wire = await wire()
    with pytest.raises(EncodeError, match=r"data\.a: cannot encode object"):
        wire.call(payload={"a": object()})

    assert [] == wire.received
    assert 0 == wire.endpoint.outstanding


async def test_a_message_over_the_servers_limit_is_not_sent():
    wire = Wire()
    wire.connect(answer_headers=[("OpenEnv-Max-Message-Bytes", "100")])
    with pytest.raises(LimitExceeded) as caught:
        wire.call(payload={"a": "x" * 100})

    assert 100 == caught.value.limit
    assert [] == wire.received


async def test_a_message_over_our_limit_ends_the_connection():
    wire = Wire(max_message_bytes=100)
    wire.connect()
    future = wire.call(payload={})
    wire.say(observation("x" * 200))

    with pytest.raises(LimitExceeded, match="limit of 100 bytes"):
        await future
    assert 1009 == wire.endpoint.close_code
    assert wire.endpoint.should_disconnect


async def test_a_lost_line_fails_everything_outstanding(wire):
    wire = await wire()
    futures = [wire.call(payload={}) for _ in range(3)]
    wire.endpoint.lost(ConnectionResetError())

    for future in futures:
        with pytest.raises(ConnectionClosed) as caught:
            await future
        assert 1006 == caught.value.code
    with pytest.raises(ConnectionClosed):
        wire.call(payload={})


async def test_close_says_goodbye_and_fails_what_waits(wire):
    wire = await wire()
    future = wire.call(payload={})
    wire._to_server(wire.endpoint.close(1000, wire.now))

    assert {"type": "close"} == wire.received[-1]
    with pytest.raises(ConnectionClosed, match="this side closed"):
        await future
    wire.flush()
    assert "closed" == wire.endpoint.state
    assert 1000 == wire.server.close_rcvd.code


async def test_an_idle_line_is_pinged_and_a_dead_one_given_up():
    wire = Wire(ping_interval_s=20.0, ping_timeout_s=20.0)
    wire.connect()
    assert wire.now + 20 == pytest.approx(wire.endpoint.next_timeout())
    wire.tick(20)
    wire.flush()  # the pong
    assert wire.now + 20 == pytest.approx(wire.endpoint.next_timeout())

    for _ in range(3):
        wire.tick(20)

    assert "closed" == wire.endpoint.state
    assert 1011 == wire.endpoint.close_code


async def test_a_decoder_may_call_back_into_the_endpoint(wire):
    wire = await wire()
    states = []

    def convert(_text):
        states.append((wire.endpoint.state, wire.endpoint.outstanding))
        return "converted"

    future = wire.call(payload={}, decoder=Decoder.result(Result, convert))
    wire.say(observation({}))

    assert "converted" == (await future).observation
    assert [("open", 0)] == states


async def test_a_decoder_that_raises_stop_iteration_fails_its_call_only(wire):
    wire = await wire()

    def convert(_text):
        return next(iter(()))

    future = wire.call(payload={}, decoder=Decoder.result(Result, convert))
    wire.say(observation({}))
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        await asyncio.wait_for(future, 5)
    assert isinstance(caught.value.__cause__, StopIteration)

    future = wire.call(payload={})
    wire.say(observation({"v": 1}))
    assert Result({"v": 1}) == await future


async def test_an_endpoint_in_a_cycle_is_collected():
    class Opened(asyncio.Future):
        pass

    wire = Wire()
    wire.opened = Opened()
    wire.opened.endpoint = wire.endpoint
    wire._to_server(wire.endpoint.connect(wire.opened, wire.now + 1, wire.now))
    gone = weakref.ref(wire.endpoint)
    del wire
    gc.collect()

    assert gone() is None


def test_an_unknown_lift_is_refused():
    with pytest.raises(ValueError, match="done, reward and metadata"):
        Decoder.result(Result, None, None, ["truncated"])


async def test_a_clock_at_its_end_can_still_close():
    wire = Wire()
    wire.connect()

    wire.endpoint.close(1000, 1e30)

    assert wire.endpoint.state == "closing"


async def test_an_endpoint_that_its_own_call_holds_is_collected():
    wire = Wire()
    wire.connect()
    endpoint = wire.endpoint
    wire.call(payload={}).add_done_callback(lambda _, held=endpoint: held)
    gone = weakref.ref(endpoint)
    del wire, endpoint
    gc.collect()

    assert gone() is None
