"""The server child: started, told, stopped whole, whatever it does."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from tests.support.processes import is_gone, wait_until

from openenv.rollout import child as child_module
from openenv.rollout.child import ChildServer
from openenv.rollout.environment import find_environment
from openenv.rollout.errors import ServerFailed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")


def replace_app(folder, source):
    (folder / "server" / "app.py").write_text(source)
    return find_environment(str(folder))


async def test_server_that_hangs_at_start_is_stopped_in_time(make_environment):
    environment = replace_app(
        make_environment("pass"),
        "import sys, time\nprint('loading the world')\ntime.sleep(60)\n",
    )
    server = ChildServer(environment, 1, start_timeout_s=8.0)
    began = time.monotonic()

    with pytest.raises(ServerFailed, match=r"was not ready within 8 s") as raised:
        await server.__aenter__()

    assert "loading the world" in str(raised.value)
    assert time.monotonic() - began < 8.0 + child_module.STOP_TIMEOUT_S


async def test_server_that_ignores_sigterm_is_killed(make_environment, monkeypatch):
    monkeypatch.setattr(child_module, "STOP_TIMEOUT_S", 0.2)
    told = make_environment("pass") / "told"
    environment = replace_app(
        told.parent,
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"pathlib.Path({str(told)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(60)\n",
    )
    server = ChildServer(environment, 1, start_timeout_s=30.0)
    starting = asyncio.create_task(server.__aenter__())
    await asyncio.to_thread(
        wait_until, lambda: told.exists() and told.read_text(), 20.0
    )

    starting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await starting
    await asyncio.to_thread(wait_until, lambda: is_gone(int(told.read_text())), 5.0)


async def test_exit_under_way_is_told_with_its_signal_and_output(make_environment):
    folder = make_environment("pass")
    app = folder / "server" / "app.py"
    app.write_text(app.read_text() + "\nprint('my last words', flush=True)\n")
    environment = find_environment(str(folder))

    async with ChildServer(environment, 1) as server:
        exiting = asyncio.create_task(server.wait_exit())
        os.kill(server.process_id, signal.SIGKILL)
        error = await asyncio.wait_for(exiting, 10)

    assert isinstance(error, ServerFailed)
    assert "killed by SIGKILL" in str(error)
    assert "my last words" in str(error)


async def test_server_is_told_how_many_sessions_it_must_take(make_environment):
    folder = make_environment("pass")
    app = folder / "server" / "app.py"
    app.write_text(
        app.read_text()
        + "\nprint('limit', os.environ['OPENENV_MAX_CONCURRENT_ENVS'], flush=True)\n"
    )

    async with ChildServer(find_environment(str(folder)), 37) as server:
        exiting = asyncio.create_task(server.wait_exit())
        os.kill(server.process_id, signal.SIGKILL)
        error = await asyncio.wait_for(exiting, 10)

    assert "limit 37" in str(error)
