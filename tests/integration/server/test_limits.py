"""What a peer may make the server hold, nest and send, and what it hears beyond."""

from __future__ import annotations

import json
from dataclasses import dataclass

import httpx
import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from tests.integration.server.hosting import (
    RESET,
    STATE,
    AsyncEchoEnvironment,
    Echo,
    EchoEnvironment,
    EchoState,
    Word,
    ask,
    close_code,
    serving,
    step,
    until,
)
from websockets.exceptions import ConnectionClosed

from openenv.core.env_server import HTTPEnvServer
from openenv.core.env_server._routes.websocket import (
    INBOX_MESSAGES,
    INBOX_SPARE_BYTES,
)

BOTH = pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])


class Anything(Word):
    value: object = None


@dataclass
class Plain:
    value: object = None


# -- pipelined requests ----------------------------------------------------------


@pytest.mark.parametrize("behind", [1, 17, 1000])
async def test_a_client_that_vanishes_behind_pipelined_requests_is_seen_at_once(behind):
    environment = AsyncEchoEnvironment.variant(SUPPORTS_CONCURRENT_SESSIONS=False)
    with serving(environment, max_concurrent_envs=1) as server:
        async with server.session() as ws:
            await ask(ws, RESET)
            for _ in range(1 + behind):
                await ws.send(step(sleep_s=60))
            await until(lambda: environment.count("step") == 1)
            ws.transport.abort()
        took_s = await until(lambda: server.server.active_sessions == 0)

    assert took_s < 2
    assert 1 == environment.count("cancelled")
    assert 1 == environment.count("close")


async def test_as_many_requests_as_may_wait_are_answered_in_order():
    texts = [str(number) for number in range(INBOX_MESSAGES)]
    with serving(EchoEnvironment.variant()) as server:
        async with server.session() as ws:
            await ws.send(step(text="first", sleep_s=0.3))
            for text in texts:
                await ws.send(step(text=text))
            answers = [json.loads(await ws.recv()) for _ in ["first", *texts]]

    answered = [answer["data"]["observation"]["text"] for answer in answers]
    assert ["first", *texts] == answered


async def test_one_request_more_ends_the_session_with_1008_and_a_reason():
    environment = AsyncEchoEnvironment.variant()
    with serving(environment) as server:
        async with server.session() as ws:
            await ws.send(step(sleep_s=60))
            await until(lambda: environment.count("step") == 1)
            for _ in range(INBOX_MESSAGES + 1):
                await ws.send(STATE)
            error = json.loads(await ws.recv())
            with pytest.raises(ConnectionClosed):
                await ws.recv()
        await until(lambda: server.server.active_sessions == 0)

    assert "SESSION_ERROR" == error["data"]["code"]
    assert f"{INBOX_MESSAGES} requests" in error["data"]["message"]
    assert 1008 == close_code(ws)
    assert 1 == environment.count("cancelled")


async def test_waiting_requests_are_bounded_in_bytes_too():
    environment = AsyncEchoEnvironment.variant()
    with serving(environment) as server:
        server.server.max_message_bytes = INBOX_SPARE_BYTES
        filler = step(text="x" * (INBOX_SPARE_BYTES // 2))
        async with server.session() as ws:
            await ws.send(step(sleep_s=60))
            await until(lambda: environment.count("step") == 1)
            for _ in range(4):
                await ws.send(filler)
            error = json.loads(await ws.recv())
        await until(lambda: server.server.active_sessions == 0)

    assert f"{2 * INBOX_SPARE_BYTES} bytes" in error["data"]["message"]


async def test_a_flood_from_a_client_that_reads_nothing_still_frees_the_slot():
    def answer(_self, _action):
        return Echo(text="x" * (8 << 20))

    environment = AsyncEchoEnvironment.variant(answer=answer)
    with serving(environment) as server:
        async with server.session(max_queue=1) as ws:
            for _ in range(4):
                await ws.send(step())
            await until(lambda: environment.count("step") >= 2)
            for _ in range(INBOX_MESSAGES + 8):
                await ws.send(STATE)
            took_s = await until(lambda: server.server.active_sessions == 0)
            ws.transport.abort()

    assert took_s < 4


# -- nesting ---------------------------------------------------------------------

DEPTHS = (150, 199, 200, 300, 490, 500, 700, 900, 985, 1000, 5000, 100_000)


@BOTH
@pytest.mark.parametrize("action", [Anything, Plain, dict])
async def test_however_deep_an_action_is_nested_the_session_lives(base, action):
    def answer(_self, _action):
        return Echo(text="taken")

    def step_(self, action, timeout_s=None, **kwargs):
        del action, timeout_s, kwargs
        return answer(self, None)

    members = {"step": step_}
    if base is AsyncEchoEnvironment:

        async def step_async(self, action, timeout_s=None, **kwargs):
            return step_(self, action, timeout_s, **kwargs)

        members["step_async"] = step_async
    with serving(base.variant(**members), action) as server:
        async with server.session() as ws:
            heard = [await ask(ws, nested(depth)) for depth in DEPTHS]
            alive = await ask(ws, '{"type":"step","data":{}}')

    words = {answer["data"].get("code", "taken") for answer in heard}
    assert {"taken", "INVALID_JSON"} == words
    assert "taken" == alive["data"]["observation"]["text"]


@pytest.mark.parametrize("kind", ["reset", "mcp", "state", "nonsense"])
async def test_however_deep_another_message_is_nested_the_session_lives(kind):
    with serving(EchoEnvironment.variant()) as server:
        async with server.session() as ws:
            for depth in DEPTHS:
                objects = '{"a":' * depth + "1" + "}" * depth
                await ask(ws, f'{{"type":"{kind}","data":{objects}}}')
            alive = await ask(ws, STATE)

    assert "state" == alive["type"]


@pytest.mark.parametrize("depth", [199, 300, 700])
async def test_a_deep_value_in_the_wrong_place_is_told_without_the_value(depth):
    deep = "[" * depth + "]" * depth
    with serving(EchoEnvironment.variant()) as server:
        async with server.session() as ws:
            error = await ask(ws, f'{{"type":"step","data":{{"text":{deep}}}}}')
            wrong = await ask(ws, deep)
            await ask(ws, f'{{"type":{deep}}}')
            alive = await ask(ws, STATE)

    assert "VALIDATION_ERROR" == error["data"]["code"]
    assert ["text"] == error["data"]["errors"][0]["loc"]
    assert "VALIDATION_ERROR" == wrong["data"]["code"]
    assert "state" == alive["type"]


def nested(depth):
    """Make a step whose action is nested so deep."""
    value = "[" * depth + "]" * depth
    return f'{{"type":"step","data":{{"value":{value}}}}}'


# -- replies ---------------------------------------------------------------------


@BOTH
async def test_a_reply_over_the_limit_is_an_error_with_reward_and_done(base):
    def answer(_self, action):
        return Echo(text="x" * int(action.text), reward=0.5, done=True)

    empty = '{"observation":{"metadata":{},"text":"","thread":0,"payload":null}'
    envelope = f'{{"type":"observation","data":{empty},"reward":0.5,"done":true}}}}'
    limit = 10_000
    with serving(base.variant(answer=answer)) as server:
        server.server.max_message_bytes = limit
        async with server.session() as ws:
            fits = await ask(ws, step(text=str(limit - len(envelope))))
            over = await ask(ws, step(text=str(limit - len(envelope) + 1)))
            alive = await ask(ws, step(text="1"))

    assert "observation" == fits["type"]
    message = "the reply has 10001 bytes, more than max_message_bytes=10000"
    assert {
        "message": message,
        "code": "EXECUTION_ERROR",
        "reward": 0.5,
        "done": True,
    } == over["data"]
    assert "x" == alive["data"]["observation"]["text"]


async def test_a_state_over_the_limit_is_an_error_too():
    environment = EchoEnvironment.variant(state=EchoState(last="x" * 10_000))
    with serving(environment) as server:
        server.server.max_message_bytes = 10_000
        async with server.session() as ws:
            error = await ask(ws, STATE)

    assert "EXECUTION_ERROR" == error["data"]["code"]
    assert "max_message_bytes=10000" in error["data"]["message"]


async def test_text_that_is_no_utf8_is_one_line_in_the_log(caplog):
    with serving(EchoEnvironment.variant()) as server:
        async with server.session() as ws:
            await ws.send(b"\xff", text=True)
            with pytest.raises(ConnectionClosed):
                await ws.recv()

    [record] = [r for r in caplog.records if "UTF-8" in r.getMessage()]
    assert 1007 == close_code(ws)
    assert record.exc_info is None


# -- HTTP ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/reset", '{"seed":1e400}'),
        ("/reset", '{"seed":NaN}'),
        ("/reset", '{"seed":"\\ud800"}'),
        ("/reset", '{"seed":' + "[" * 300 + "]" * 300 + "}"),
        ("/step", '{"action":1e400}'),
        ("/step", '{"action":{"text":1e400}}'),
        ("/step", '{"action":{"text":"a","\\ud800":1}}'),
        ("/step", '{"action":{"text":' + "[" * 300 + "]" * 300 + "}}"),
        ("/step", '{"action":{"text":' + "[" * 700 + "]" * 700 + "}}"),
    ],
)
async def test_what_no_field_takes_is_422_in_json_whatever_it_holds(path, body):
    with serving(EchoEnvironment.variant()) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            answer = await client.post(path, content=body, headers=JSON)

    assert 422 == answer.status_code
    assert isinstance(answer.json()["detail"][0]["msg"], str)


@pytest.mark.parametrize("path", ["/reset", "/step"])
@pytest.mark.parametrize("depth", DEPTHS)
async def test_however_deep_a_body_is_nested_the_answer_is_json(path, depth):
    deep = "[" * depth + "]" * depth
    body = f'{{"action":{{"value":{deep}}},"value":{deep}}}'
    with serving(EchoEnvironment.variant(), Anything) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            answer = await client.post(path, content=body, headers=JSON)

    assert answer.status_code in {200, 400, 422, 500}
    assert {"detail", "observation"} & set(answer.json())


async def test_a_body_that_is_neither_json_nor_text_is_422():
    with serving(EchoEnvironment.variant()) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            answer = await client.post("/step", content=b"\xff\xfe")

    assert 422 == answer.status_code
    assert ["body"] == answer.json()["detail"][0]["loc"]


async def test_an_authors_own_handler_of_invalid_requests_is_kept():
    def own(_request, _error):
        raise AssertionError

    app = FastAPI(exception_handlers={RequestValidationError: own})
    server = HTTPEnvServer(EchoEnvironment.variant(), Word, Echo)
    server.register_routes(app)

    assert own is app.exception_handlers[RequestValidationError]


JSON = {"content-type": "application/json"}
