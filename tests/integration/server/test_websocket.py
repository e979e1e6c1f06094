"""The classic protocol on /ws: what is answered, and what ends a session."""

from __future__ import annotations

import asyncio
import json
import logging

import numpy as np
import pytest
from fastapi import FastAPI
from pydantic import field_serializer, field_validator
from tests.integration.server.hosting import (
    CLOSE,
    RESET,
    STATE,
    AsyncEchoEnvironment,
    Echo,
    EchoEnvironment,
    Word,
    ask,
    close_code,
    running,
    serving,
    step,
    until,
)
from websockets.exceptions import ConnectionClosed

from openenv.core.env_server import Environment, create_app
from openenv.core.structs import ActionStruct, ObservationStruct, StateStruct

BOTH = pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])


@BOTH
async def test_reset_step_and_state_are_answered_in_upstreams_shape(base):
    with serving(base.variant()) as server:
        async with server.session() as ws:
            reset = await ask(ws, '{"type":"reset","data":{"episode_id":"e"}}')
            stepped = await ask(ws, step(text="hi"))
            state = await ask(ws, STATE)

    assert "observation" == reset["type"]
    assert "reset" == reset["data"]["observation"]["text"]
    assert ["observation", "reward", "done"] == list(stepped["data"])
    assert "hi" == stepped["data"]["observation"]["text"]
    assert 1.0 == stepped["data"]["reward"]
    assert {} == stepped["data"]["observation"]["metadata"]
    expected = {"episode_id": "e", "step_count": 1, "last": "hi"}
    assert {"type": "state", "data": expected} == state


@BOTH
async def test_pipelined_requests_are_answered_in_order(base):
    texts = [str(number) for number in range(100)]
    with serving(base.variant()) as server:
        async with server.session() as ws:
            for text in texts:
                await ws.send(step(text=text))
            answers = [json.loads(await ws.recv()) for _ in texts]

    assert texts == [answer["data"]["observation"]["text"] for answer in answers]


@pytest.mark.parametrize("message", ["[1,2]", "5", '"reset"', "null", b"[]"])
async def test_json_that_is_no_object_is_one_error_and_the_session_lives(message):
    with serving() as server:
        async with server.session() as ws:
            error = await ask(ws, message)
            alive = await ask(ws, step(text="alive"))

    assert "VALIDATION_ERROR" == error["data"]["code"]
    assert "dict_type" == error["data"]["errors"][0]["type"]
    assert "alive" == alive["data"]["observation"]["text"]


async def test_a_binary_frame_with_json_is_taken_like_text():
    with serving() as server:
        async with server.session() as ws:
            answer = await ask(ws, step(text="bytes").encode())
            junk = await ask(ws, b"\x00\xff\xfe")
            alive = await ask(ws, STATE)

    assert "bytes" == answer["data"]["observation"]["text"]
    assert "INVALID_JSON" == junk["data"]["code"]
    assert "state" == alive["type"]


async def test_what_only_pythons_json_takes_is_taken():
    deep = "[" * 300 + "]" * 300
    message = f'{{"type":"reset","data":{{"x":NaN,"y":{deep},"z":"\\ud800"}}}}'
    with serving() as server:
        async with server.session() as ws:
            answer = await ask(ws, message)

    assert "observation" == answer["type"]


async def test_unknown_types_and_broken_json_are_worded_as_upstream():
    with serving() as server:
        async with server.session() as ws:
            unknown = await ask(ws, '{"type":7}')
            missing = await ask(ws, "{}")
            broken = await ask(ws, '{"type":"reset"} x')

    assert "Unknown message type: 7" == unknown["data"]["message"]
    assert "Unknown message type: " == missing["data"]["message"]
    expected = "Invalid JSON: Extra data: line 1 column 18 (char 17)"
    assert {"message": expected, "code": "INVALID_JSON"} == broken["data"]


@BOTH
@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), RuntimeError()])
async def test_whatever_step_raises_the_server_and_other_sessions_live(base, raised):
    def answer(_self, action):
        if action.text == "raise":
            raise raised
        return Echo(text=action.text)

    with serving(base.variant(answer=answer)) as server:
        async with server.session() as other, server.session() as ws:
            error = await ask(ws, step(text="raise"))
            alive = await ask(ws, step(text="alive"))
            also = await ask(other, step(text="other"))

    assert "EXECUTION_ERROR" == error["data"]["code"]
    assert str(raised) or type(raised).__name__ == error["data"]["message"]
    assert ["message", "code"] == list(error["data"])
    assert "alive" == alive["data"]["observation"]["text"]
    assert "other" == also["data"]["observation"]["text"]


@BOTH
async def test_the_traceback_of_a_step_is_in_the_servers_log(base, caplog):
    def answer(_self, _action):
        raise LookupError("four is not liked")

    with serving(base.variant(answer=answer)) as server:
        async with server.session() as ws:
            await ask(ws, step(text="4"))

    [record] = [r for r in caplog.records if r.name.startswith("openenv")]
    assert "WARNING" == record.levelname
    assert "the environment raised LookupError" == record.getMessage()
    assert isinstance(record.exc_info[1], LookupError)


@BOTH
async def test_not_even_an_exit_in_a_validator_or_a_serializer_ends_the_server(base):
    class Fatal(Word):
        @field_validator("text")
        @classmethod
        def _exit(cls, value):
            if value == "validator":
                raise SystemExit(3)
            return value

    class Unspeakable(Echo):
        @field_serializer("text")
        def _exit(self, value):
            if value == "serializer":
                raise SystemExit(4)
            return value

    def answer(_self, action):
        return Unspeakable(text=action.text)

    with serving(base.variant(answer=answer), Fatal) as server:
        async with server.session() as ws:
            codes = [
                (await ask(ws, step(text=text)))["data"].get("code")
                for text in ("validator", "serializer", "alive")
            ]

    assert ["EXECUTION_ERROR", "EXECUTION_ERROR", None] == codes


async def test_a_validation_error_inside_step_is_the_environments_fault():
    def answer(_self, _action):
        return Echo(done="certainly not a bool")

    with serving(EchoEnvironment.variant(answer=answer)) as server:
        async with server.session() as ws:
            error = await ask(ws, step())

    assert "EXECUTION_ERROR" == error["data"]["code"]


async def test_arrays_scalars_and_bytes_are_encoded():
    payload = {"a": np.arange(4).reshape(2, 2), "n": np.int64(7), "b": b"\xff\x00"}

    def answer(_self, _action):
        return Echo(payload=payload)

    with serving(EchoEnvironment.variant(answer=answer)) as server:
        async with server.session() as ws:
            reply = await ask(ws, step())

    expected = {"a": [[0, 1], [2, 3]], "n": 7, "b": {"__bytes__": "/wA="}}
    assert expected == reply["data"]["observation"]["payload"]


async def test_a_reply_that_cannot_be_encoded_tells_reward_done_and_the_field():
    def answer(_self, _action):
        return Echo(payload={"x": [object()]}, reward=0.5, done=True)

    with serving(EchoEnvironment.variant(answer=answer)) as server:
        async with server.session() as ws:
            error = await ask(ws, step())
            state = await ask(ws, STATE)

    assert "EXECUTION_ERROR" == error["data"]["code"]
    assert "observation.payload.x[0]" in error["data"]["message"]
    assert (0.5, True) == (error["data"]["reward"], error["data"]["done"])
    assert 1 == state["data"]["step_count"]


async def test_additions_go_only_to_peers_that_asked():
    def answer(_self, action):
        if action.text == "raise":
            raise KeyError("k")
        return Echo(payload=[float("nan"), float("-inf")], reward=float("inf"))

    def reset(_self, seed=None):  # noqa: ARG001 - its name is what matters
        return Echo()

    environment = EchoEnvironment.variant(answer=answer, reset=reset)
    asked = {"OpenEnv-Features": "nonfinite, ignored, exception"}
    unknown_keys = '{"type":"reset","data":{"seed":1,"level":2,"hard":true}}'
    with serving(environment) as server:
        async with server.session(additional_headers=asked) as ws:
            ours = [
                await ask(ws, m) for m in (unknown_keys, step(), step(text="raise"))
            ]
            limit = ws.response.headers.get("OpenEnv-Max-Message-Bytes")
        async with server.session() as ws:
            stock = [
                await ask(ws, m) for m in (unknown_keys, step(), step(text="raise"))
            ]
            assert "OpenEnv-Max-Message-Bytes" not in ws.response.headers

    assert {"ignored": ["level", "hard"]} == ours[0]["ext"]
    assert {
        (("observation", "payload", 0), "nan"),
        (("observation", "payload", 1), "-inf"),
        (("reward",), "inf"),
    } == {(tuple(path), kind) for path, kind in ours[1]["ext"]["nonfinite"]}
    assert {"exception": "KeyError"} == ours[2]["ext"]
    assert str(100 * 1024 * 1024) == limit
    assert [["type", "data"]] * 3 == [list(answer) for answer in stock]
    assert [None, None] == stock[1]["data"]["observation"]["payload"]


async def test_a_close_message_ends_the_session_with_1000_and_closes_the_environment():
    environment = EchoEnvironment.variant()
    with serving(environment) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
            await ws.send(CLOSE)
            with pytest.raises(ConnectionClosed):
                await ws.recv()
            closed = environment.count("close")

    assert 1000 == close_code(ws)
    assert 1 == closed


async def test_a_full_server_refuses_with_1013_and_takes_the_next_after_a_close():
    with serving(EchoEnvironment.variant(), max_concurrent_envs=1) as server:
        async with server.session() as first:
            await ask(first, RESET)
            async with server.session() as second:
                refused = json.loads(await second.recv())
                with pytest.raises(ConnectionClosed):
                    await second.recv()
        async with server.session() as third:
            answer = await ask(third, RESET)

    expected = {
        "message": "Server at capacity: 1/1 sessions active. "
        "Cannot accept new connections.",
        "code": "CAPACITY_REACHED",
        "active_sessions": 1,
        "max_sessions": 1,
    }
    assert {"type": "error", "data": expected} == refused
    assert 1013 == close_code(second)
    assert "observation" == answer["type"]


async def test_a_single_slot_is_free_for_a_client_that_reconnects_at_once():
    environment = EchoEnvironment.variant(SUPPORTS_CONCURRENT_SESSIONS=False)
    with serving(environment, max_concurrent_envs=1) as server:
        for _ in range(20):
            async with server.session() as ws:
                answer = await ask(ws, RESET)

                assert "observation" == answer["type"]


async def test_a_factory_that_raises_is_told_and_closes_with_1011(caplog):
    def broken_factory():
        raise OSError("disk missing")

    with serving(broken_factory, max_concurrent_envs=None) as server:
        async with server.session() as ws:
            error = json.loads(await ws.recv())
            with pytest.raises(ConnectionClosed):
                await ws.recv()
        active = server.server.active_sessions

    expected = "Environment factory 'broken_factory' failed to create instance."
    assert expected == error["data"]["message"]
    assert "broken_factory" == error["data"]["factory_name"]
    assert 1011 == close_code(ws)
    assert 0 == active
    assert "disk missing" in caplog.text


async def test_an_ordinary_close_leaves_no_line_in_the_log(caplog):
    caplog.set_level(logging.INFO)
    environment = EchoEnvironment.variant()
    with serving(environment) as server:
        for _ in range(3):
            async with server.session() as ws:
                await ask(ws, RESET)
        await until(lambda: environment.count("close") == 3)
        lines = [r for r in caplog.records if r.levelno >= logging.WARNING]

    assert [] == lines


async def test_a_17_mib_action_is_taken():
    text = "y" * (17 * 1024 * 1024)
    with serving() as server:
        async with server.session() as ws:
            answer = await ask(ws, step(text=text))

    assert len(text) == len(answer["data"]["observation"]["text"])


async def test_big_integers_and_all_of_unicode_round_trip():
    text = "é✓\u2028\0😀"

    def answer(_self, action):
        return Echo(text=action.text, payload=2**70)

    with serving(EchoEnvironment.variant(answer=answer)) as server:
        async with server.session() as ws:
            reply = await ask(ws, step(text=text))

    assert text == reply["data"]["observation"]["text"]
    assert 2**70 == reply["data"]["observation"]["payload"]


async def test_json_rpc_of_an_environment_without_tools_says_so():
    def rpc(**members):
        return {"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, **members}}

    with serving() as server:
        async with server.session() as ws:
            listed = await ask(ws, rpc(method="tools/list"))
            unnamed = await ask(ws, rpc(method="tools/call"))
            unknown = await ask(ws, rpc(method="nope"))
            broken = await ask(ws, {"type": "mcp", "data": {}})

    no_tools = {
        "code": -32603,
        "message": "Environment does not support MCP",
        "data": None,
    }
    assert {"jsonrpc": "2.0", "id": 1, "error": no_tools} == listed["data"]
    assert -32602 == unnamed["data"]["error"]["code"]
    assert "Method not found: nope" == unknown["data"]["error"]["message"]
    assert -32600 == broken["data"]["error"]["code"]


async def test_the_app_runs_mounted_below_another_path():
    outer = FastAPI()
    inner = create_app(EchoEnvironment.variant(), dict, Echo)
    outer.mount("/env", inner)
    outer.state.openenv_server = inner.state.openenv_server
    with running(outer) as server:
        server.ws_url = server.ws_url.replace("/ws", "/env/ws")
        async with server.session() as ws:
            answer = await ask(ws, RESET)

    assert "observation" == answer["type"]


async def test_many_connections_leave_no_task_or_slot_behind():
    environment = EchoEnvironment.variant()
    with serving(environment, max_concurrent_envs=64) as server:

        async def visit():
            async with server.session() as ws:
                await ask(ws, RESET)

        for _ in range(4):
            await asyncio.gather(*(visit() for _ in range(50)))
        await until(lambda: server.server.active_sessions == 0)
        await until(lambda: environment.count("close") == 200)

    assert 200 == environment.count("init")


async def test_sessions_can_be_asked_about():
    with serving(EchoEnvironment.variant()) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
            await ask(ws, step())
            (session_id,) = server.server._session_registry._open
            await until(lambda: server.server.get_session_info(session_id).step_count)
            info = server.server.get_session_info(session_id)
            status = server.server.get_capacity_status()

    assert (1, "EchoEnvironment") == (info.step_count, info.environment_type)
    assert info.created_at <= info.last_activity_at
    assert (1, 7) == (status.active_sessions, status.available_slots)


async def test_a_close_that_is_a_coroutine_is_awaited(caplog):
    async def close(self):
        await asyncio.sleep(0)
        self._note("closed")
        raise RuntimeError("and then it failed")

    environment = AsyncEchoEnvironment.variant(close=close)
    with serving(environment) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
        await until(lambda: environment.count("closed") == 1)

    assert "and then it failed" in caplog.text


async def test_an_environment_may_speak_structs():
    class Push(ActionStruct):
        force: int

    class Moved(ObservationStruct):
        position: int = 0

    class Where(StateStruct):
        position: int = 0

    class Cart(Environment):
        def reset(self, **_kwargs):
            self.position = 0
            return Moved()

        def step(self, action, **_kwargs):
            self.position += action.force
            return Moved(position=self.position, reward=1, metadata={"k": "v"})

        @property
        def state(self):
            return Where(position=self.position, step_count=1)

    with serving(Cart, Push, Moved, max_concurrent_envs=1) as server:
        async with server.session() as ws:
            reset = await ask(ws, RESET)
            moved = await ask(ws, step(force=3))
            wrong = await ask(ws, step(force="x"))
            extra = await ask(ws, step(force=1, bogus=2))
            state = await ask(ws, STATE)

    empty = {"metadata": {}, "position": 0}
    assert {"observation": empty, "reward": None, "done": False} == reset["data"]
    expected = {
        "observation": {"metadata": {"k": "v"}, "position": 3},
        "reward": 1,
        "done": False,
        "metadata": {"k": "v"},
    }
    assert expected == moved["data"]
    assert ["force"] == wrong["data"]["errors"][0]["loc"]
    assert "VALIDATION_ERROR" == extra["data"]["code"]
    assert {"episode_id": None, "step_count": 1, "position": 3} == state["data"]


async def test_a_fault_of_the_server_itself_is_told_and_logged(caplog):
    with serving(EchoEnvironment.variant()) as server:

        def broken(*_arguments):
            raise LookupError("our own bug")

        server.server.dispatcher.answer = broken
        async with server.session() as ws:
            error = await ask(ws, RESET)
            with pytest.raises(ConnectionClosed):
                await ws.recv()
        await until(lambda: server.server.active_sessions == 0)

    expected = {"message": "our own bug", "code": "SESSION_ERROR"}
    assert expected == error["data"]
    assert 1011 == close_code(ws)
    assert "a fault of the server" in caplog.text
