"""The figures of first light, with real processes: threads, rounds, freed slots."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import httpx
import pytest
from tests.support.processes import ChildProcess, wait_until

pytestmark = pytest.mark.timeout(120)

HERE = Path(__file__).parent
MAX_SERVER_THREADS = 64
MAX_CLIENT_THREADS = 8
MAX_ROUND_S = 3.0
MAX_FREE_S = 5.0


def serve(name: str) -> ChildProcess:
    application = f"applications:{name}"
    return ChildProcess([sys.executable, str(HERE / "serve.py"), application])


def hold(port: int, sessions: int, rounds: int) -> ChildProcess:
    arguments = [str(number) for number in (port, sessions, rounds)]
    return ChildProcess([sys.executable, str(HERE / "hold_sessions.py"), *arguments])


def open_environments(port: int) -> int:
    response = httpx.get(f"http://127.0.0.1:{port}/environments", trust_env=False)
    return int(response.text)


def test_a_thousand_quick_sessions_need_few_threads():
    with serve("quick") as server:
        port = server.wait_for_port()
        with hold(port, sessions=1000, rounds=5) as client:
            peak = [0, 0]

            def finished() -> bool:
                peak[:] = map(max, peak, (server.threads(), client.threads()))
                assert client.returncode is None, client.output()
                return "DONE" in client.output()

            wait_until(finished, 60.0, client.output)
            assert open_environments(port) == 1000

    assert peak[0] <= MAX_SERVER_THREADS
    assert peak[1] <= MAX_CLIENT_THREADS


def test_five_hundred_steps_of_a_second_finish_together():
    with serve("slow") as server:
        port = server.wait_for_port()
        with hold(port, sessions=500, rounds=3) as client:
            client.wait_for_line("^DONE$", 60.0)
            rounds = re.findall(r"^ROUND (\S+)$", client.output(), re.MULTILINE)

    assert len(rounds) == 3
    assert all(1.0 <= float(seconds) <= MAX_ROUND_S for seconds in rounds), rounds


@pytest.mark.parametrize("name", ["quick", "slow"])
def test_killing_the_client_frees_every_slot(name: str):
    with serve(name) as server:
        port = server.wait_for_port()
        with hold(port, sessions=1000, rounds=0) as client:
            client.wait_for_line("^READY$", 60.0)
            assert open_environments(port) == 1000

            client.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            wait_until(lambda: open_environments(port) == 0, MAX_FREE_S)
            freed_s = time.monotonic() - killed
        with hold(port, sessions=1000, rounds=1) as again:
            again.wait_for_line("^DONE$", 60.0)

    assert freed_s <= MAX_FREE_S
