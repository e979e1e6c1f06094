"""The boundary of the server's codec: requests told apart, replies written."""

from __future__ import annotations

import math

import numpy as np
import pytest

from openenv.core._native import native
from openenv.errors import EncodeError

Irregular = native.Irregular
Request = native.Request
error_reply = native.error_reply
mcp_reply = native.mcp_reply
observation_reply = native.observation_reply
split_request = native.split_request
state_reply = native.state_reply


@pytest.mark.parametrize(
    ("text", "op", "data"),
    [
        ('{"type":"reset"}', "reset", None),
        ('{"type": "reset", "data": {}}', "reset", b"{}"),
        ('{"data":{"a": 1},"type":"step"}', "step", b'{"a": 1}'),
        ('{"type":"state"}', "state", None),
        ('{"type":"close"}', "close", None),
        ('{"type":"mcp","data":{"id":1}}', "mcp", b'{"id":1}'),
        ('{"type":"st\\u0065p","data":{}}', "step", b"{}"),
    ],
)
@pytest.mark.parametrize("form", [str, str.encode])
def test_a_regular_request_is_split(text, op, data, form):
    request = split_request(form(text))

    assert isinstance(request, Request)
    assert (op, data) == (request.op, request.data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nope",
        "[1,2]",
        "null",
        '"reset"',
        "{}",
        '{"type":1}',
        '{"type":"fly"}',
        '{"type":"step"}',
        '{"type":"step","data":[]}',
        '{"type":"reset","data":null}',
        '{"type":"state","data":{}}',
        '{"type":"state","x":1}',
        '{"type":"state","type":"state"}',
        '{"type":"step","data":' + "[" * 300 + "]" * 300 + "}",
    ],
)
def test_any_other_message_is_given_back_as_it_came(text):
    irregular = split_request(text)

    assert isinstance(irregular, Irregular)
    assert text.encode() == irregular.raw


def test_bytes_markers_are_pointed_out():
    marked = split_request('{"type":"step","data":{"b":{"__bytes__":"AA=="}}}')
    plain = split_request('{"type":"step","data":{"b":"bytes"}}')

    assert isinstance(marked, Request)
    assert isinstance(plain, Request)
    assert (marked.marked, plain.marked) == (True, False)


def test_a_message_is_str_or_bytes():
    with pytest.raises(TypeError, match="str or bytes"):
        split_request(1)  # type: ignore[arg-type]


def test_an_observation_reply_has_upstreams_shape():
    reply = observation_reply({"echoed": "é"}, 0.5, False)

    assert reply.decode() == (
        '{"type":"observation","data":'
        '{"observation":{"echoed":"é"},"reward":0.5,"done":false}}'
    )


@pytest.mark.parametrize(
    ("metadata", "tail"),
    [({}, b""), ({"k": 1}, b',"metadata":{"k":1}')],
)
def test_metadata_travels_only_when_there_is_some(metadata, tail):
    reply = observation_reply({}, None, True, metadata)

    assert b'"reward":null,"done":true' + tail + b"}}" in reply


def test_lost_floats_are_told_to_peers_that_asked():
    observation = {"a": [1.0, math.nan], "np": np.array([[-math.inf]])}
    told = observation_reply(observation, math.inf, False, nonfinite=True)
    plain = observation_reply(observation, math.inf, False)

    data = (
        b'"data":{"observation":{"a":[1.0,null],"np":[[null]]},'
        b'"reward":null,"done":false}'
    )
    assert b'{"type":"observation",' + data + b"}" == plain
    assert (
        b'{"type":"observation",' + data + b',"ext":{"nonfinite":['
        b'[["observation","a",1],"nan"],'
        b'[["observation","np",0,0],"-inf"],'
        b'[["reward"],"inf"]]}}'
    ) == told


def test_nothing_is_said_beside_a_reply_that_lost_nothing():
    assert b"ext" not in observation_reply({}, 1.0, False, nonfinite=True, ext={})


def test_the_callers_ext_is_kept_and_not_changed():
    ext = {"ignored": ["x"]}
    reply = state_reply({"v": math.nan}, nonfinite=True, ext=ext)

    assert reply == (
        b'{"type":"state","data":{"v":null},'
        b'"ext":{"ignored":["x"],"nonfinite":[[["v"],"nan"]]}}'
    )
    assert ext == {"ignored": ["x"]}


def test_errors_and_mcp_have_their_envelopes():
    error = error_reply({"code": "C"}, ext={"exception": "E"})

    assert b'{"type":"error","data":{"code":"C"},"ext":{"exception":"E"}}' == error
    assert b'{"type":"mcp","data":{"id":1}}' == mcp_reply({"id": 1})


def test_an_unencodable_member_is_named():
    with pytest.raises(
        EncodeError, match=r"^observation\.a\[0\]: cannot encode object$"
    ):
        observation_reply({"a": [object()]}, None, False)


def test_an_iterator_is_written_once_and_never_emptied_by_a_second_pass():
    reply = observation_reply({"a": iter([1, math.nan])}, 1.0, False, nonfinite=True)

    data = b'{"observation":{"a":[1,null]},"reward":1.0,"done":false}'
    assert b'{"type":"observation","data":' + data + b"}" == reply


def test_keys_of_replies_are_spelled_by_pydantic():
    assert b'"data":{"None":1,"1e+100":2}' in state_reply({None: 1, 1e100: 2})
