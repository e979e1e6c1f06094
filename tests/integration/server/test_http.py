"""The HTTP routes: shapes, errors, modes, and the app's own facts."""

from __future__ import annotations

import inspect

import httpx
import numpy as np
import pytest
from fastapi import FastAPI, HTTPException
from pydantic import field_validator
from tests.integration.server.hosting import (
    RESET,
    AsyncEchoEnvironment,
    Echo,
    EchoEnvironment,
    EchoState,
    TestClient,
    Word,
    serving,
    step,
    until,
)

from openenv.core.env_server import (
    HTTPEnvServer,
    create_app,
    create_fastapi_app,
)

BOTH = pytest.mark.parametrize("base", [EchoEnvironment, AsyncEchoEnvironment])


@BOTH
async def test_reset_step_and_state_build_and_close_an_environment_each(base):
    environment = base.variant()
    with serving(environment, state_cls=EchoState) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            reset = await client.post("/reset", json={"seed": 3, "episode_id": "e"})
            empty = await client.post("/reset")
            action = {"action": {"text": "hi"}, "timeout_s": 5, "other": 1}
            stepped = await client.post("/step", json=action)
            state = await client.get("/state")
        await until(lambda: environment.count("close") == 4)

    assert 200 == empty.status_code
    assert "reset" == reset.json()["observation"]["text"]
    assert ["observation", "reward", "done", "metadata"] == list(stepped.json())
    assert ("hi", 1.0) == (
        stepped.json()["observation"]["text"],
        stepped.json()["reward"],
    )
    assert {"episode_id": None, "step_count": 0, "last": ""} == state.json()
    assert 4 == environment.count("init")


async def test_step_keywords_reach_the_environment():
    def step_(self, action, timeout_s=None, colour=None):
        del self, action
        return Echo(text=f"{timeout_s} {colour}")

    with serving(EchoEnvironment.variant(step=step_)) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            body = {"action": {}, "timeout_s": 2.5, "colour": "red", "shape": "round"}
            stepped = await client.post("/step", json=body)

    assert "2.5 red" == stepped.json()["observation"]["text"]


@BOTH
async def test_faults_are_json_with_a_code(base, caplog):
    def answer(_self, action):
        if action.text == "teapot":
            raise HTTPException(418, "teapot")
        if action.text == "object":
            return Echo(payload=object(), reward=2, done=True)
        raise RuntimeError(action.text)

    with serving(base.variant(answer=answer)) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            answers = {
                text: await client.post("/step", json={"action": {"text": text}})
                for text in ("boom", "", "teapot", "object")
            }

    def detail(text):
        return answers[text].json()["detail"]

    assert [500, 500, 418, 500] == [a.status_code for a in answers.values()]
    assert {"code": "EXECUTION_ERROR", "message": "boom"} == detail("boom")
    assert "RuntimeError" == detail("")["message"]
    assert "teapot" == detail("teapot")
    assert "observation.payload" in detail("object")["message"]
    assert (2.0, True) == (detail("object")["reward"], detail("object")["done"])
    assert "boom" in caplog.text


async def test_a_broken_factory_is_json_with_its_name():
    def broken():
        raise OSError("disk missing")

    with serving(broken, max_concurrent_envs=None) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            answer = await client.post("/reset")

    assert 500 == answer.status_code
    detail = answer.json()["detail"]
    assert ("FACTORY_ERROR", "broken") == (detail["code"], detail["factory_name"])


async def test_invalid_actions_are_422_whatever_the_validator_raises():
    class Polite(Word):
        @field_validator("text")
        @classmethod
        def _no_bad(cls, value):
            if value == "bad":
                raise ValueError("bad is not allowed")
            return value

    with serving(EchoEnvironment.variant(), Polite) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            extra = await client.post("/step", json={"action": {"bogus": 1}})
            bad = await client.post("/step", json={"action": {"text": "bad"}})
            seed = await client.post("/reset", json={"seed": -1})
            nan = await client.post(
                "/step",
                content=b'{"action":{"text":NaN}}',
                headers={"content-type": "application/json"},
            )

    assert [422] * 4 == [a.status_code for a in (extra, bad, seed, nan)]
    assert ["bogus"] == extra.json()["detail"][0]["loc"]
    assert {"error": "bad is not allowed"} == bad.json()["detail"][0]["ctx"]
    assert ["body", "seed"] == seed.json()["detail"][0]["loc"]


async def test_a_validator_that_breaks_is_the_authors_fault():
    class Broken(Word):
        @field_validator("text")
        @classmethod
        def _break(cls, value):
            raise KeyError(value)

    with serving(EchoEnvironment.variant(), Broken) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            answer = await client.post("/step", json={"action": {"text": "x"}})

    assert 500 == answer.status_code
    assert {"code": "EXECUTION_ERROR", "message": "'x'"} == answer.json()["detail"]


async def test_rewards_become_floats_and_arrays_lists():
    def answer(_self, _action):
        return Echo(payload=np.zeros((1, 2)), reward=True)

    with serving(EchoEnvironment.variant(answer=answer)) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            stepped = await client.post("/step", json={"action": {}})

    assert '"reward":1.0' in stepped.text
    assert [[0.0, 0.0]] == stepped.json()["observation"]["payload"]


async def test_schema_metadata_and_health():
    with serving(EchoEnvironment.variant(), state_cls=EchoState) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            schema = (await client.get("/schema")).json()
            metadata = (await client.get("/metadata")).json()
            health = (await client.get("/health")).json()

    assert ["action", "observation", "state", "reset_observation"] == list(schema)
    assert Word.model_json_schema() == schema["action"]
    assert "last" in schema["state"]["properties"]
    assert "EchoEnvironment environment" == metadata["description"]
    assert {"status": "healthy"} == health


async def test_http_requests_do_not_count_against_the_sessions():
    with serving(EchoEnvironment.variant(), max_concurrent_envs=1) as server:
        async with (
            server.session() as ws,
            httpx.AsyncClient(base_url=server.url) as client,
        ):
            await ws.send(RESET)
            await ws.recv()
            answer = await client.post("/reset")

    assert 200 == answer.status_code


def test_production_leaves_out_the_control_routes(monkeypatch):
    monkeypatch.setenv("OPENENV_MODE", "Production")
    client = TestClient(create_app(EchoEnvironment.variant(), Word, Echo))

    codes = [client.request(m, p).status_code for m, p in CONTROL]

    assert [404, 404, 404] == codes
    assert 200 == client.get("/health").status_code


def test_the_argument_wins_over_the_variable(monkeypatch):
    monkeypatch.setenv("OPENENV_MODE", "nonsense")
    app = create_app(EchoEnvironment.variant(), Word, Echo, mode="SIMULATION")

    assert 200 == TestClient(app).post("/reset").status_code
    with pytest.raises(ValueError, match="Invalid mode: 'nonsense'"):
        create_app(EchoEnvironment.variant(), Word, Echo)


def test_asking_for_the_web_page_is_answered_in_the_log(monkeypatch, caplog):
    monkeypatch.setenv("ENABLE_WEB_INTERFACE", "True")
    create_app(EchoEnvironment.variant(), Word, Echo)

    assert "no web page" in caplog.text


def test_the_app_works_in_process_with_starlettes_test_client():
    environment = EchoEnvironment.variant()
    client = TestClient(create_app(environment, Word, Echo))

    with client.websocket_connect("/ws") as ws:
        ws.send_text(step(text="hi"))
        answer = ws.receive_json()

    assert "hi" == answer["data"]["observation"]["text"]
    assert 200 == client.post("/reset", json={}).status_code


def test_openapi_tells_upstreams_facts():
    app = create_app(EchoEnvironment.variant(), Word, Echo, state_cls=EchoState)
    openapi = app.openapi()

    operations = {
        (path, method): operation["operationId"]
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    }
    assert {
        ("/reset", "post"): "reset_reset_post",
        ("/step", "post"): "step_step_post",
        ("/state", "get"): "endpoint_state_get",
        ("/metadata", "get"): "endpoint_metadata_get",
        ("/health", "get"): "endpoint_health_get",
        ("/schema", "get"): "get_schemas_schema_get",
        ("/mcp", "post"): "mcp_endpoint_mcp_post",
    } == operations
    assert ["200", "422"] == list(openapi["paths"]["/reset"]["post"]["responses"])
    assert {"200", "422", "500"} == set(openapi["paths"]["/step"]["post"]["responses"])
    assert "EchoState" in openapi["components"]["schemas"]
    assert ("OpenEnv Environment HTTP API", "1.0.0") == (
        openapi["info"]["title"],
        openapi["info"]["version"],
    )


def test_routes_are_registered_in_upstreams_order():
    app = create_app(EchoEnvironment.variant(), Word, Echo)
    paths = [getattr(route, "path", None) for route in app.routes]
    ours = [p for p in paths if p and not p.startswith(("/docs", "/redoc", "/openapi"))]

    assert [
        "/mcp",  # the WebSocket
        "/reset",
        "/step",
        "/state",
        "/metadata",
        "/health",
        "/schema",
        "/mcp",
        "/ws",
    ] == ours


def test_the_factories_keep_upstreams_signatures():
    parameters = inspect.signature(create_app).parameters

    assert [
        "env",
        "action_cls",
        "observation_cls",
        "env_name",
        "max_concurrent_envs",
        "concurrency_config",
        "gradio_builder",
        "custom_tab_name",
        "custom_tab_primary",
        "show_default_tab",
        "title_override",
        "state_cls",
        "mode",
        "reset_observation_cls",
    ] == list(parameters)
    assert "Callable" in str(parameters["env"].annotation)
    assert isinstance(create_fastapi_app(env=EchoEnvironment), FastAPI)


def test_a_subclass_may_override_register_routes():
    class Calendar(HTTPEnvServer):
        def __init__(self):
            super().__init__(env=EchoEnvironment, action_cls=Word, observation_cls=Echo)

        def register_routes(self, app):
            assert self._env_factory is EchoEnvironment
            super().register_routes(app, mode="production")

    app = FastAPI()
    Calendar().register_routes(app)

    assert 404 == TestClient(app).post("/reset").status_code
    assert 200 == TestClient(app).get("/metadata").status_code


CONTROL = [("POST", "/reset"), ("POST", "/step"), ("GET", "/state")]
