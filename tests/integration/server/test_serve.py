"""The runner: port, limits, stopping, and what importing loads."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request

import pytest
from tests.support.processes import interruptible
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from openenv.core.env_server._serve import _bind, raise_file_limit

SERVER = """
    from openenv.core.env_server import Action, Environment, Observation, State
    from openenv.core.env_server import create_app, serve

    class Empty(Environment):
        def reset(self, **kwargs):
            return Observation()
        def step(self, action, **kwargs):
            return Observation()
        @property
        def state(self):
            return State()

    serve(
        create_app(Empty, Action, Observation),
        port=0,
        on_ready=lambda host, port: print(port, flush=True),
    )
"""

HANGING_STEP = """def step(self, action, **kwargs):
            print("in step", flush=True)
            import time
            time.sleep(60)
"""


def python(code, *arguments):
    """Run code in a fresh interpreter; returns what it printed."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM on Windows")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_tells_its_port_prints_nothing_and_stops_on_a_signal(number):
    command = [sys.executable, "-c", textwrap.dedent(SERVER)]
    process = subprocess.Popen(
        interruptible(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    port = int(process.stdout.readline())
    url = f"http://127.0.0.1:{port}/health"
    with urllib.request.urlopen(url, timeout=10) as answer:
        health = json.load(answer)
    os.kill(process.pid, number)
    stdout, stderr = process.communicate(timeout=20)

    assert {"status": "healthy"} == health
    assert "" == stdout
    assert "" == stderr
    assert process.returncode == (0 if number == signal.SIGINT else -number)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a child on Windows")
def test_a_second_sigint_ends_a_server_that_waits_for_a_step():
    hanging = SERVER.replace("def step(self, action, **kwargs):\n", HANGING_STEP)
    command = [sys.executable, "-c", textwrap.dedent(hanging)]
    process = subprocess.Popen(
        interruptible(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    port = int(process.stdout.readline())
    with connect(f"ws://127.0.0.1:{port}/ws", proxy=None) as websocket:
        websocket.send('{"type":"step","data":{}}')

        assert "in step\n" == process.stdout.readline()

        os.kill(process.pid, signal.SIGINT)
        with pytest.raises(ConnectionClosed):
            websocket.recv(timeout=10)
    start = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    took_s = time.monotonic() - start

    assert took_s < 5  # the deadline is at 10 s
    assert 0 == process.returncode


@pytest.mark.skipif(sys.platform != "linux", reason="options are inherited on Linux")
def test_accepted_connections_notice_a_peer_that_is_gone():
    with contextlib.closing(_bind("127.0.0.1", 0)) as listener:
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                keepalive = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                timeout_ms = accepted.getsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT
                )

    assert (1, 600_000) == (keepalive, timeout_ms)  # as long as a busy client may be


def test_an_address_that_is_taken_is_told_at_once():
    with contextlib.closing(_bind("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            _bind("127.0.0.1", port)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_the_soft_file_limit_is_raised_to_the_hard_one():
    resource = pytest.importorskip("resource")

    raise_file_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert hard == soft


def test_types_and_clients_load_no_web_framework():
    printed = python("""
        import sys
        import openenv, openenv.core, openenv.core.env_client
        import openenv.core.env_server.types, openenv.core.env_server.interfaces
        import openenv.core.env_server.mcp_types, openenv.core.structs
        from openenv.core import EnvClient, Environment, Observation
        from openenv.core.env_server import State
        heavy = {"fastapi", "starlette", "uvicorn", "websockets", "httpx", "typer"}
        print(sorted(heavy & set(sys.modules)))
    """)

    assert "[]" == printed.strip()


def test_a_server_name_without_the_extra_says_what_to_install():
    printed = python("""
        import sys
        sys.modules["fastapi"] = None  # as if it were not installed
        import openenv.core.env_server as server
        from openenv.core.env_server import Environment
        for name in ("create_app", "HTTPEnvServer"):
            try:
                getattr(server, name)
            except ModuleNotFoundError as error:
                print(error)
        try:
            import openenv.core.env_server.http_server
        except ModuleNotFoundError as error:
            print(error)
    """)

    assert 3 == printed.count("pip install 'openenv[core]'")


def test_every_name_of_the_faces_exists():
    printed = python("""
        import openenv, openenv.core, openenv.core.env_server
        for module in (openenv.core, openenv.core.env_server):
            assert set(module.__all__) <= set(dir(module))
            for name in module.__all__:
                getattr(module, name)
        assert openenv.core.env_server.serve.__name__ == "serve"
        for module in (openenv, openenv.core, openenv.core.env_server):
            try:
                module.nonsense
            except AttributeError as error:
                print(error)
    """)

    assert "module 'openenv' has no attribute 'nonsense'" in printed
    assert "module 'openenv.core' has no attribute 'nonsense'" in printed


def test_the_deprecated_package_gives_the_same_module_objects():
    printed = python("""
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import openenv_core
        print([warning.category.__name__ for warning in caught])
        import openenv_core.env_server.types as old
        from openenv_core.env_server.interfaces import Environment
        from openenv_core.env_client import EnvClient
        from openenv_core import State
        import openenv.core, openenv.core.env_client
        import openenv.core.env_server.types as new
        from openenv.core.env_server.interfaces import Environment as NewEnvironment
        assert old is new and State is new.State
        assert Environment is NewEnvironment
        assert EnvClient is openenv.core.env_client.EnvClient
        assert new.__spec__.name == new.__name__ == "openenv.core.env_server.types"
        assert set(openenv_core.__all__) == set(openenv.core.__all__)
        try:
            import openenv_core.nonsense
        except ModuleNotFoundError as error:
            print(error)
    """)

    assert "['DeprecationWarning']" in printed
    assert "openenv_core.nonsense" in printed
