"""HTTP requests of one session, by header or by cookie."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from tests.integration.server.hosting import (
    AsyncEchoEnvironment,
    Echo,
    EchoEnvironment,
    EchoState,
    TestClient,
    Word,
    ask,
    serving,
    step,
    until,
)
from websockets.asyncio.client import connect

from openenv.core.env_server import create_app
from openenv.core.env_server.types import ConcurrencyConfig

BOTH = pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])
NEW = {"X-OpenEnv-Session": "new"}


def action(text):
    return {"action": {"text": text}}


def count(response):
    return response.json()["step_count"]


@BOTH
async def test_requests_with_the_sessions_header_share_one_environment(base):
    environment = base.variant()
    with serving(environment, state_cls=EchoState, max_concurrent_envs=2) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            reset = await client.post("/reset", headers=NEW)
            client.cookies.clear()
            named = {"X-OpenEnv-Session": reset.headers["x-openenv-session"]}
            for text in "ab":
                await client.post("/step", json=action(text), headers=named)
            state = await client.get("/state", headers=named)
            alone = await client.get("/state")
            sessions = server.server.active_sessions
            await client.post("/reset", headers=named)
            again = await client.get("/state", headers=named)

    assert (2, "b") == (count(state), state.json()["last"])
    assert (0, 0) == (count(alone), count(again))
    assert 1 == sessions
    assert 2 == environment.count("init")  # of the session, and of the lone request


@BOTH
async def test_a_client_that_keeps_cookies_is_one_session(base):
    environment = base.variant()
    with serving(environment, state_cls=EchoState) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            reset = await client.post("/reset", headers=NEW)
            for text in "ab":
                await client.post("/step", json=action(text))
            state = await client.get("/state")

    assert 2 == count(state)
    cookie = reset.headers["set-cookie"]
    assert cookie.startswith("openenv_session=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert 1 == environment.count("init")


async def test_without_a_session_nothing_is_different():
    with serving(EchoEnvironment.variant(), state_cls=EchoState) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            reset = await client.post("/reset")

    assert "set-cookie" not in reset.headers
    assert "x-openenv-session" not in reset.headers


@pytest.mark.parametrize("name", ["nobody's", "new"])
async def test_an_unknown_session_is_404_and_says_what_to_do(name):
    environment = EchoEnvironment.variant()
    with serving(environment) as server:
        async with httpx.AsyncClient(
            base_url=server.url, headers={"X-OpenEnv-Session": name}
        ) as client:
            answers = [
                await client.post("/step", json=action("a")),
                await client.get("/state"),
            ]
            if name != "new":
                answers.append(await client.post("/reset"))

    for answer in answers:
        detail = answer.json()["detail"]
        assert (404, "SESSION_ERROR") == (answer.status_code, detail["code"])
        assert "POST /reset with the header X-OpenEnv-Session: new" in detail["message"]
    assert 0 == environment.count("init")


async def test_a_reset_with_an_old_cookie_begins_a_new_session():
    with serving(EchoEnvironment.variant(), state_cls=EchoState) as server:
        async with httpx.AsyncClient(
            base_url=server.url, cookies={"openenv_session": "old"}
        ) as client:
            refused = await client.get("/state")
            client.cookies.clear()
            client.cookies.set("openenv_session", "old", domain="127.0.0.1")
            await client.post("/reset")
            await client.post("/step", json=action("a"))
            state = await client.get("/state")

    assert 404 == refused.status_code
    assert 1 == count(state)


async def test_sessions_count_against_the_capacity_and_can_be_closed():
    with serving(EchoEnvironment.variant(), max_concurrent_envs=1) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            first = await client.post("/reset", headers=NEW)
            client.cookies.clear()
            full = await client.post("/reset", headers=NEW)
            session_id = first.headers["x-openenv-session"]
            close = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "openenv/session/close",
                "params": {"session_id": session_id},
            }
            closed = await client.post("/mcp", json=close)
            after = await client.get(
                "/state", headers={"X-OpenEnv-Session": session_id}
            )
            other = await client.post("/reset", headers=NEW)

    assert (503, "CAPACITY_REACHED") == (
        full.status_code,
        full.json()["detail"]["code"],
    )
    assert True is closed.json()["result"]["closed"]
    assert (404, 200) == (after.status_code, other.status_code)


async def test_an_idle_session_expires():
    environment = EchoEnvironment.variant()
    config = ConcurrencyConfig(max_concurrent_envs=1, session_timeout=0.2)
    with serving(
        environment, max_concurrent_envs=None, concurrency_config=config
    ) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            await client.post("/reset", headers=NEW)
            await until(lambda: server.server.active_sessions == 0)
            gone = await client.get("/state")
        await until(lambda: environment.count("close") == 1)

    assert 404 == gone.status_code


async def test_requests_at_once_are_served_in_turn():
    environment = AsyncEchoEnvironment.variant()
    with serving(environment, state_cls=EchoState) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
            await client.post("/reset", headers=NEW)
            steps = [
                client.post("/step", json={"action": {"text": str(n), "sleep_s": 0.02}})
                for n in range(8)
            ]
            answers = await asyncio.gather(*steps)
            state = await client.get("/state")

    assert {str(n) for n in range(8)} == {
        answer.json()["observation"]["text"] for answer in answers
    }
    assert 8 == count(state)


async def test_the_session_can_be_gone_on_with_over_a_websocket():
    environment = EchoEnvironment.variant()
    with serving(environment, state_cls=EchoState) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            reset = await client.post("/reset", headers=NEW)
            await client.post("/step", json=action("a"))
            session_id = reset.headers["x-openenv-session"]
            async with connect(f"{server.ws_url}?session_id={session_id}") as ws:
                await ask(ws, step(text="b"))
            state = await client.get("/state")

    assert (2, "b") == (count(state), state.json()["last"])


@BOTH
async def test_a_fault_leaves_the_session_alive(base):
    class Fragile(base):
        def answer(self, action):
            if action.text == "bad":
                raise RuntimeError("boom")
            return super().answer(action)

    with serving(Fragile.variant(), state_cls=EchoState) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            await client.post("/reset", headers=NEW)
            fault = await client.post("/step", json=action("bad"))
            invalid = await client.post("/step", json={"action": {"text": 5}})
            good = await client.post("/step", json=action("good"))

    assert (500, 422, 200) == (
        fault.status_code,
        invalid.status_code,
        good.status_code,
    )


def test_a_test_client_has_sessions_too():
    app = create_app(EchoEnvironment.variant(), Word, Echo, state_cls=EchoState)
    with TestClient(app) as client:
        client.post("/reset", headers=NEW)
        client.post("/step", json=action("a"))

        assert 1 == client.get("/state").json()["step_count"]


class SlowToBuild(EchoEnvironment):
    def __init__(self):
        time.sleep(0.5)
        super().__init__()


async def test_a_client_that_leaves_before_the_answer_holds_no_slot():
    environment = SlowToBuild.variant()
    with serving(environment, max_concurrent_envs=1) as server:
        for left in (1, 2):
            async with httpx.AsyncClient(base_url=server.url, timeout=0.1) as client:
                with pytest.raises(httpx.ReadTimeout):
                    await client.post("/reset", headers=NEW)
            await until(lambda n=left: environment.count("close") == n)
        async with httpx.AsyncClient(base_url=server.url) as client:
            answer = await client.post("/reset", headers=NEW)

    assert 200 == answer.status_code


@pytest.mark.parametrize("fault", [HTTPException(418), RuntimeError("boom")])
async def test_a_reset_that_fails_begins_no_session(fault):
    def reset(*_, **__):
        raise fault

    environment = EchoEnvironment.variant(reset=reset)
    with serving(environment, max_concurrent_envs=1) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            for _ in range(3):
                answer = await client.post("/reset", headers=NEW)
                await until(lambda: server.server.active_sessions == 0)

    assert answer.status_code in {418, 500}
    assert "x-openenv-session" not in answer.headers
    assert 3 == environment.count("close")


async def test_a_session_is_closed_under_a_step_that_does_not_end():
    environment = EchoEnvironment.variant()
    with serving(environment) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
            reset = await client.post("/reset", headers=NEW)
            session_id = reset.headers["x-openenv-session"]
            step_ = {"action": {"text": "x", "sleep_s": 8}}
            stepping = asyncio.create_task(client.post("/step", json=step_))
            await until(lambda: environment.count("step") == 1)
            close = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "openenv/session/close",
                "params": {"session_id": session_id},
            }
            async with asyncio.timeout(7):
                closed = await client.post("/mcp", json=close)
            stepping.cancel()

    assert True is closed.json()["result"]["closed"]


async def test_what_an_environment_is_called_needs_no_session():
    with serving(EchoEnvironment.variant()) as server:
        async with httpx.AsyncClient(
            base_url=server.url, cookies={"openenv_session": "old"}
        ) as client:
            assert 200 == (await client.get("/metadata")).status_code


async def test_apps_below_different_paths_have_cookies_of_their_own():
    outer = FastAPI()
    for path in ("/a", "/b"):
        app = create_app(EchoEnvironment.variant(), Word, Echo, state_cls=EchoState)
        outer.mount(path, app)
    transport = httpx.ASGITransport(app=outer)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        for path in ("/a", "/b"):
            await client.post(f"{path}/reset", headers={"X-OpenEnv-Session": " NEW "})
        for path, text in (("/a", "1"), ("/b", "2"), ("/a", "3")):
            await client.post(f"{path}/step", json=action(text))
        states = [await client.get(f"{path}/state") for path in ("/a", "/b")]

    assert [(2, "3"), (1, "2")] == [
        (count(each), each.json()["last"]) for each in states
    ]


def test_a_session_of_a_loop_that_has_ended_is_told_and_frees_its_slot():
    app = create_app(EchoEnvironment.variant(), Word, Echo)  # one session
    for _ in range(3):
        client = TestClient(app)  # a loop a request, without `with`
        begun = client.post("/reset", headers=NEW)
        refused = client.post("/step", json=action("a"))

        assert 200 == begun.status_code
        assert 404 == refused.status_code
