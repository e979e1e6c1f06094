"""The app under other ASGI servers and settings than our runner's."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from tests.integration.client.scripted import free_port
from tests.integration.server.hosting import (
    RESET,
    STATE,
    Echo,
    EchoEnvironment,
    Running,
    Word,
    ask,
    step,
    until,
)
from tests.support.processes import ROOT, ChildProcess

from openenv.core.env_server import create_app
from openenv.core.env_server._serve import _bind
from openenv.core.generic_client import GenericEnvClient


@contextlib.contextmanager
def uvicorn_running(app, **settings):
    """Serve with a stock uvicorn until the end of the block."""
    listener = _bind("127.0.0.1", 0)
    config = uvicorn.Config(app, log_config=None, **settings)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Running(app, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "settings",
    [
        {"loop": "asyncio", "http": "h11", "ws": "websockets-sansio"},
        {"loop": "uvloop", "http": "httptools", "ws": "auto"},
    ],
)
async def test_a_stock_uvicorn_serves_the_app(settings):
    environment = EchoEnvironment.variant()
    app = create_app(environment, Word, Echo, max_concurrent_envs=4)
    with uvicorn_running(app, **settings) as server:
        async with server.session() as ws:
            texts = [
                (await ask(ws, step(text=text)))["data"]["observation"]["text"]
                for text in ("a", "b")
            ]
        async with server.session() as ws:
            await ask(ws, RESET)
            await ws.send(step(sleep_s=0.2))
            ws.transport.abort()
        await until(lambda: server.server.active_sessions == 0)
        await until(lambda: environment.count("close") == 2)

    assert ["a", "b"] == texts


async def test_middleware_and_further_routes_of_the_author_work():
    app = create_app(EchoEnvironment.variant(), Word, Echo)

    @app.middleware("http")
    async def tag(request, call_next):
        response = await call_next(request)
        response.headers["x-tag"] = request.url.path
        return response

    @app.get("/extra")
    def extra():
        return {"extra": True}

    app.routes[:] = [r for r in app.routes if getattr(r, "path", "") != "/schema"]
    assert isinstance(app, FastAPI)
    with uvicorn_running(app, loop="asyncio") as server:
        async with server.session() as ws:
            answer = await ask(ws, RESET)
            state = await ask(ws, STATE)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /extra HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        body = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()

    assert ("observation", "state") == (answer["type"], state["type"])
    assert "x-tag: /extra" in body
    assert '{"extra":true}' in body


async def test_the_app_works_in_process_with_httpx():
    app = create_app(EchoEnvironment.variant(), Word, Echo)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        reset = await client.post("/reset", headers={"X-OpenEnv-Session": "new"})
        stepped = await client.post("/step", json={"action": {"text": "hi"}})
        health = await client.get("/health")

    assert ("reset", "hi") == (
        reset.json()["observation"]["text"],
        stepped.json()["observation"]["text"],
    )
    assert {"status": "healthy"} == health.json()


async def test_a_mounted_app_is_served_below_its_path():
    outer = FastAPI()
    inner = create_app(EchoEnvironment.variant(), Word, Echo)
    outer.mount("/env", inner)
    outer.state.openenv_server = inner.state.openenv_server
    with uvicorn_running(outer) as server:
        async with GenericEnvClient(f"{server.url}/env") as client:
            await client.reset()
            answer = await client.step({"text": "hi"})
            schemas = await client.schema()

    assert "hi" == answer.observation["text"]
    assert {"action", "observation", "state"} <= set(schemas)


@pytest.mark.parametrize("worker", ["uvicorn_worker", "uvicorn.workers"])
async def test_gunicorns_uvicorn_worker_serves_the_app(worker):
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    pytest.importorskip(worker, reason=f"there is no {worker}")
    port = free_port()
    command = [
        *(sys.executable, "-m", "gunicorn", "grid_world_env.server.app:app"),
        *("-w", "1", "-k", f"{worker}.UvicornWorker", "-b", f"127.0.0.1:{port}"),
        *("--pythonpath", str(ROOT / "envs")),
    ]
    with ChildProcess(command) as child:
        client = GenericEnvClient(f"http://127.0.0.1:{port}")
        await client.connect(retry_s=30)
        async with client:
            await client.reset(seed=1)
            answer = await client.step({"direction": "up"})
        child.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(child.wait, 20)

    assert False is answer.done
    assert 0 == code
