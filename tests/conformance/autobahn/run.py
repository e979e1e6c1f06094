"""Run the Autobahn suite against the Rust core and compare with the record.

python tests/conformance/autobahn/run.py [--quick] [--accept] [client|server|endpoint]

Exit 1 if a case failed or a verdict is not the recorded one. A case that differs is run
once more, alone: the suite judges by the clock, and a busy machine can be late.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from judge import (
    ALL,
    BINARY,
    QUICK,
    Verdicts,
    differing,
    read_record,
    read_report,
    selected,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SUITE = HERE / "autobahn.sh"
RECORDS = HERE / "verdicts"
REPORTS = ROOT / "tests" / "conformance" / "reports" / "autobahn"
SIDES = ("client", "server", "endpoint")
PROGRAMS = {
    "client": "echo_client",
    "server": "echo_server",
    "endpoint": "echo_endpoint",
}
COMPRESSION = ("12.*", "13.*")
START_TIMEOUT_S = 30.0


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    programs = build()
    subprocess.run([SUITE, "setup"], check=True)
    patterns = QUICK if options.quick else ALL
    sides = [options.side] if options.side else SIDES
    outcomes = [
        judge_side(side, programs[PROGRAMS[side]], patterns, accept=options.accept)
        for side in sides
    ]
    return 0 if all(outcomes) else 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", nargs="?", choices=SIDES, help="all three without it")
    parser.add_argument("--quick", action="store_true", help=" ".join(QUICK))
    parser.add_argument("--accept", action="store_true", help="rewrite the record")
    options = parser.parse_args(arguments)
    if options.accept and options.quick:
        parser.error("a record is made of all cases: leave out --quick")
    return options


def build() -> dict[str, Path]:
    """Build the drivers; their paths by name."""
    command = ["cargo", "build", "--release", "--locked", "--package"]
    command += ["openenv-autobahn", "--message-format", "json-render-diagnostics"]
    built = subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    messages = map(json.loads, built.stdout.splitlines())
    programs = (message.get("executable") for message in messages)
    return {Path(path).name: Path(path) for path in programs if path}


def judge_side(
    side: str, program: Path, patterns: Sequence[str], *, accept: bool
) -> bool:
    """Run one side; tell what differs; true if all is as recorded and passed."""
    started = time.monotonic()
    seen = run_side(side, program, patterns)
    path = RECORDS / f"{side}.json"
    if accept:
        write_record(path, seen)
    recorded = selected(read_record(path), patterns)
    unsteady = [case for case in differing(recorded, seen) if case in seen]
    if unsteady:
        say(f"{side}: run once more: {' '.join(unsteady)}")
        seen |= run_side(side, program, unsteady)
    changed = differing(recorded, seen)
    for case in changed:
        say(f"{side} {case}: recorded {recorded.get(case)}, seen {seen.get(case)}")
    failed = [case for case, verdict in seen.items() if not verdict.passed]
    for case in failed:
        say(f"{side} {case}: failed, see {REPORTS / side}")
    duration_s = time.monotonic() - started
    passed = len(seen) - len(failed)
    say(f"{side}: {passed} passed, {len(failed)} failed ({duration_s:.0f} s)")
    return not changed and not failed


def run_side(side: str, program: Path, patterns: Sequence[str]) -> Verdicts:
    """Run the cases of one side; what the suite said of each."""
    reports = REPORTS / side
    shutil.rmtree(reports, ignore_errors=True)
    excluded = COMPRESSION + (BINARY if side == "endpoint" else ())
    cases = {
        "AUTOBAHN_CASES": json.dumps(list(patterns)),
        "AUTOBAHN_EXCLUDE": json.dumps(list(excluded)),
    }
    reports.mkdir(parents=True)
    with (reports / "suite.log").open("w") as log:
        if side == "client":
            run_client(program, reports, cases, log.fileno())
        else:
            run_server(program, reports, cases, log.fileno())
    return read_report(reports)


def run_server(program: Path, reports: Path, cases: dict[str, str], log: int) -> None:
    with running([program], {}, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        command = [SUITE, "fuzzingclient", f"ws://127.0.0.1:{port}", reports]
        subprocess.run(
            command, check=True, env=surroundings(cases), stdout=log, stderr=log
        )


def run_client(program: Path, reports: Path, cases: dict[str, str], log: int) -> None:
    port = free_port()
    suite = [SUITE, "fuzzingserver", str(port), reports]
    with running(suite, cases, stdout=log, stderr=log) as server:
        wait_until_open(port, server)
        subprocess.run([program, str(port)], check=True)


@contextmanager
def running(
    command: Sequence[str | Path],
    cases: dict[str, str],
    *,
    stdout: int,
    stderr: int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Keep a child for the time of the block."""
    child = subprocess.Popen(
        command, env=surroundings(cases), stdout=stdout, stderr=stderr
    )
    try:
        yield child
    finally:
        child.terminate()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def surroundings(cases: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **cases}  # noqa: TID251 - handed on, not read


def free_port() -> int:
    """Find a port for the suite, which cannot choose one itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_until_open(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    message = f"the suite does not listen on port {port}, see {REPORTS}"
    raise RuntimeError(message)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
