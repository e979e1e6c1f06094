"""Client CPU a step, classic JSON to a stock upstream server, ours against upstream's.

    python benches/python/classic_client.py --upstream-python PATH [--sessions 64 1024]

Rounds are interleaved, the client is pinned to one core and the server to another;
what counts is the ratio of the medians. Ours comes twice, on Rust and on plain Python;
so does upstream's client: without compression, and with the one that a stock server
grants it (none of ours asks for it).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PEERS = Path(__file__).parent.parent / "peers"


def pinned(core: int, *command: str, **options):
    """Run a command on one core."""
    return subprocess.Popen(
        command,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - no threads
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


class Rival(NamedTuple):
    """A Python that has some ``openenv``, and how its client is run."""

    python: tuple[str, ...]
    options: tuple[str, ...] = ()


def measure(rival: Rival, url: str, sessions: int, steps: int) -> float:
    """Return CPU microseconds a step of one client process."""
    arguments = (url, str(sessions), str(steps), *rival.options)
    client = pinned(1, *rival.python, str(PEERS / "echo_client.py"), *arguments)
    out, _ = client.communicate(timeout=600)
    assert client.returncode == 0
    return json.loads(out)["cpu_us"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream-python", required=True)
    parser.add_argument("--sessions", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40_000, help="of all sessions")
    options = parser.parse_args()
    server = pinned(
        0, options.upstream_python, str(PEERS / "upstream_server.py"), "uvloop"
    )
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    rivals = {
        "ours": Rival((sys.executable,)),
        "ours, pure Python": Rival(("env", "OPENENV_PURE_PYTHON=1", sys.executable)),
        "upstream": Rival((options.upstream_python,), ("plain",)),
        "upstream with deflate": Rival((options.upstream_python,)),
    }
    try:
        for sessions in options.sessions:
            steps = max(options.steps // sessions, 5)
            figures = {name: [] for name in rivals}
            for _ in range(options.rounds):
                for name, rival in rivals.items():
                    figures[name].append(measure(rival, url, sessions, steps))
            medians = {name: statistics.median(them) for name, them in figures.items()}
            for name, cpu_us in medians.items():
                ratio = cpu_us / medians["ours"]
                print(f"N={sessions}: {name} {cpu_us:.1f} µs, {ratio:.2f} x ours")
    finally:
        server.stdin.close()
        server.wait(10)


main()
