"""Ctrl-C while a blocking start goes on: one KeyboardInterrupt, nothing left."""

from __future__ import annotations

import json
import re
import signal
import sys
import textwrap

import pytest
from tests.integration.providers import servers
from tests.integration.providers.test_from_docker_image import containers
from tests.integration.providers.test_process_provider import group_members
from tests.support.processes import ChildProcess, wait_until

FORMS = {
    "with a client": "with client: pass",
    "with a face": "with client.sync(): pass",
    "connect": "client.connect()",
    "reset": "client.reset()",
}
CODE = """
import sys
from openenv.core.containers.runtime import ProcessProvider
from openenv.core.generic_client import GenericEnvClient

class Provider(ProcessProvider):
    def _launch(self, *args, **kwargs):
        child = super()._launch(*args, **kwargs)
        print("GROUP", child.pid, flush=True)
        return child

client = GenericEnvClient(provider=Provider(sys.argv[1]))
"""


@pytest.fixture
def slow(tmp_path):
    (tmp_path / "openenv.yaml").write_text("name: slow\napp: slow_app:app\n")
    (tmp_path / "slow_app.py").write_text("import time; time.sleep(600)\n")
    return str(tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_an_interrupted_script_ends_with_one_traceback(slow, form):
    command = [sys.executable, "-c", CODE + FORMS[form], slow]
    with ChildProcess(command) as child:
        group = int(child.wait_for_line(r"^GROUP (\d+)$").group(1))
        _interrupt(child)

    assert [] == group_members(group)


def test_a_container_goes_as_well(engine, image):
    code = (
        "import json, sys\n"
        "from openenv.core.generic_client import GenericEnvClient\n"
        "command = json.loads(sys.argv[2])\n"
        "with GenericEnvClient.from_docker_image(sys.argv[1], command=command): pass\n"
    )
    command = [sys.executable, "-c", code, image, json.dumps(servers.HANGS)]
    with ChildProcess(command) as child:
        wait_until(lambda: containers(engine, image), 20, child.output)
        _interrupt(child)

    assert [] == containers(engine, image)


def _interrupt(child):
    child.send_signal(signal.SIGINT)
    code = child.wait(10)

    assert -signal.SIGINT == code, child.output()
    told = re.sub(r"^GROUP \d+\n", "", child.output())
    assert 1 == told.count("Traceback"), told
    assert told.startswith("Traceback"), told
    assert told.endswith("\nKeyboardInterrupt\n"), told


def test_all_is_cleaned_up_when_the_interrupt_is_raised(slow):
    code = CODE + textwrap.dedent(
        """
        try:
            client.connect()
        except KeyboardInterrupt:
            print("PROCESS", client._provider._process, flush=True)
            sys.stdin.read()
        """
    )
    with ChildProcess([sys.executable, "-c", code, slow]) as child:
        group = int(child.wait_for_line(r"^GROUP (\d+)$").group(1))
        child.send_signal(signal.SIGINT)
        child.wait_for_line(r"^PROCESS None$", 5)

        assert [] == group_members(group)


def test_a_second_one_does_not_wait(slow):
    code = CODE + textwrap.dedent(
        """
        import threading
        held = threading.Event()
        client._provider.interrupt = lambda: print("INTERRUPTED", flush=True)
        try:
            client.connect()
        except KeyboardInterrupt:
            print("RAISED", flush=True)
            type(client._provider).interrupt(client._provider)
        """
    )
    with ChildProcess([sys.executable, "-c", code, slow]) as child:
        child.wait_for_line(r"^GROUP (\d+)$")
        child.send_signal(signal.SIGINT)
        child.wait_for_line(r"^INTERRUPTED$", 5)
        assert "RAISED" not in child.output()
        child.send_signal(signal.SIGINT)
        child.wait_for_line(r"^RAISED$", 5)
        wait_until(lambda: child.returncode == 0, 15, child.output)


CUSTOM = """
import asyncio, contextlib, threading, time
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectionClosed

class Provider:
    def start_container(self):
        print("STARTING", flush=True)
        time.sleep(1)
        print("STARTED", flush=True)
        return "http://127.0.0.1:9"
    def wait_for_ready(self, url):
        pass
    def stop_container(self):
        print("STOPPED", flush=True)

client = GenericEnvClient(provider=Provider())
"""
ENDS = {
    "Ctrl-C": """
client.sync().connect()
""",
    "exit with the start in a thread": """
def connect():
    with contextlib.suppress(Exception):
        client.sync().connect(retry_s=60)
threading.Thread(target=connect, daemon=True).start()
time.sleep(0.3)
""",
    "exit with the start on a loop in a thread": """
async def connect():
    with contextlib.suppress(Exception):
        await client.connect(retry_s=60)
threading.Thread(target=lambda: asyncio.run(connect()), daemon=True).start()
time.sleep(0.3)
""",
    "exit with the stop in a thread": """
async def connect():
    await client._lifetime.start()
asyncio.run(connect())
Provider.stop_container = lambda self: (time.sleep(1), print("STOPPED", flush=True))
def close():
    with contextlib.suppress(ConnectionClosed):
        client.close()
threading.Thread(target=close, daemon=True).start()
time.sleep(0.3)
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_custom_provider_is_stopped_once_however_the_process_ends(end):
    with ChildProcess([sys.executable, "-c", CUSTOM + ENDS[end]]) as child:
        child.wait_for_line(r"^STARTING$")
        if end == "Ctrl-C":
            child.send_signal(signal.SIGINT)
        child.wait(10)
        told = child.output()

    assert 1 == told.count("STARTED") == told.count("STOPPED"), told
    assert "never retrieved" not in told
    assert ("KeyboardInterrupt" in told) == (end == "Ctrl-C"), told
    assert told.count("Traceback") == (end == "Ctrl-C"), told
