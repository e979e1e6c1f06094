"""The child process that runs a package's own code, and its parent's side.

The child tells on a pipe, one JSON line each, the check that begins and what it found.
So a package that hangs, exits or crashes is blamed on the check that ran it. It leads
its own process group, which is stopped whole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from openenv.cli.validation.checks import Finding, Verdict, run_checks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openenv.cli.manifest import Manifest
    from openenv.cli.validation.checks import Listener

PROBE_CHECKS: Final = (
    "client.import",
    "app.import",
    "types.action",
    "types.observation",
    "types.state",
    "types.client",
    "types.flag",
    "types.drawable",
    "contract.tools",
    "contract.reset",
    "contract.step",
    "contract.state",
    "contract.episode_id",
    "contract.step_count",
    "contract.reward",
    "contract.done",
    "contract.seed",
    "contract.sessions",
    "contract.client",
)
_LOOK_S: Final = 0.5  # how soon the end of a child is seen whose pipe is held open
_WAITS: Final = (
    "do no long work at import, and let no call wait for ever; --timeout sets the time"
)
_ENDS: Final = "let no code of the package end its process"
_READ_BYTES: Final = 64 * 1024
# Two sessions play beside each other; the class decides whether it allows them.
_SESSIONS: Final = "4"


def probe(folder: Path, manifest: Manifest, seconds: float, listener: Listener) -> None:
    """Run the checks of a package's code in a child.

    Args:
        folder: the package's.
        manifest: what it says of itself.
        seconds: how long all of it may take.
        listener: as for `run_checks`.
    """
    read_end, write_end = os.pipe()
    arguments = _command(folder, manifest.app, write_end, seconds)
    if manifest.validation is not None:
        arguments.append(f"--range={json.dumps(manifest.validation.reward.range)}")
    child = subprocess.Popen(  # noqa: S603 - ourselves
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(write_end,),
        start_new_session=True,
        env=_variables(),
    )
    os.close(write_end)
    done = set[str]()
    deadline_s = time.monotonic() + seconds
    try:
        for message in _messages(read_end, child, deadline_s):
            if "finding" in message:
                finding = Finding.from_dict(message["finding"])
                done.add(finding.check)
                listener(finding)
            else:
                listener(message["begin"])
            if len(done) == len(PROBE_CHECKS):
                break
        late = time.monotonic() >= deadline_s
    finally:
        os.close(read_end)
        _stop(child)
    if len(done) < len(PROBE_CHECKS):
        why = f"not done within {seconds:g} s" if late else _describe_end(child)
        _tell_unfinished(done, why, _WAITS if late else _ENDS, listener)


def main() -> None:
    """Run the checks of the package named by the arguments."""
    parser = argparse.ArgumentParser(prog="openenv.cli.validation.probe")
    parser.add_argument("folder", type=Path)
    parser.add_argument("app")
    parser.add_argument("pipe", type=int)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--range", type=json.loads)
    parser.add_argument("--trace", action="store_true", help="play one episode only")
    arguments = parser.parse_args()
    os.set_inheritable(arguments.pipe, False)
    begun = ""

    def tell(what: str | Finding) -> None:
        nonlocal begun
        message: dict[str, Any] = {}
        if isinstance(what, str):
            begun = message["begin"] = what
        else:
            message["finding"] = what.as_dict()
        _write(arguments.pipe, json.dumps(message).encode() + b"\n")

    try:
        _run(arguments, tell)
    except Exception as error:  # noqa: BLE001 - a fault of the checks, to be told
        why = f"the check itself failed: {type(error).__name__}: {error}"
        tell(Finding(begun, Verdict.FAIL, why, "report this to the makers of openenv"))
    # Threads of the environment must not keep the process.
    os._exit(0)


def _run(arguments: argparse.Namespace, tell: Listener) -> None:
    from openenv.cli.validation.contract import (  # noqa: PLC0415 - the child's alone
        CONTRACT_CHECKS,
        SEED,
    )
    from openenv.cli.validation.imports import (  # noqa: PLC0415 - as above
        IMPORT_CHECKS,
        Code,
    )
    from openenv.cli.validation.playing import (  # noqa: PLC0415 - as above
        Raised,
        Stage,
        trace,
    )
    from openenv.rollout.tools import calls_tools  # noqa: PLC0415 - as above

    code = Code(arguments.folder, arguments.app)
    quiet = _ignore if arguments.trace else tell
    passed = run_checks(IMPORT_CHECKS, code, quiet)
    if code.application is None:
        run_checks(CONTRACT_CHECKS, Stage("", code.draw), quiet, passed)
        return
    with _served(code.application) as url:
        stage = Stage(
            url,
            code.draw,
            concurrent=code.server.is_concurrency_safe,
            calls_tools=calls_tools(code.action_schema),
            seconds=arguments.seconds,
            client_class=code.client_class,
            typed=code.typed,
            folder=arguments.folder,
            raised=Raised(),
            fresh=partial(_play_afresh, arguments),
        )
        if arguments.trace:
            run_checks(CONTRACT_CHECKS[:1], stage, quiet, passed)
            _write(arguments.pipe, json.dumps(trace(stage, SEED)).encode())
            return
        if arguments.range:
            stage.reward_range = (arguments.range[0], arguments.range[1])
        run_checks(CONTRACT_CHECKS, stage, tell, passed)


def _play_afresh(arguments: argparse.Namespace) -> str:
    """Play an episode in a process where none was played; empty if that fails."""
    read_end, write_end = os.pipe()
    # In our own process group, so that it is stopped with us.
    command = _command(arguments.folder, arguments.app, write_end, arguments.seconds)
    child = subprocess.Popen(  # noqa: S603 - ourselves
        [*command, "--trace"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(write_end,),
    )
    os.close(write_end)
    with open(read_end, "rb") as pipe:  # noqa: PTH123 - no path
        told = pipe.read().decode()
    return "" if child.wait() else told


def _command(folder: Path, app: str, pipe: int, seconds: float) -> list[str]:
    module = "openenv.cli.validation.probe"
    arguments = [str(folder), app, str(pipe), f"--seconds={seconds}"]
    # -P: what lies where the command is run is none of the package's modules.
    return [sys.executable, "-P", "-m", module, *arguments]


def _write(pipe: int, data: bytes) -> None:
    """Write all of it: a pipe may take a part."""
    while data:
        data = data[os.write(pipe, data) :]


def _ignore(_: str | Finding) -> None:
    return None


@contextlib.contextmanager
def _served(application: Any) -> Iterator[str]:  # noqa: ANN401 - an ASGI app
    from openenv.core.env_server import Server  # noqa: PLC0415 - the child's alone

    server = Server(application, host="127.0.0.1", port=0)
    threading.Thread(target=server.run, daemon=True).start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def _messages(
    read_end: int, child: subprocess.Popen[bytes], deadline_s: float
) -> Iterator[dict[str, Any]]:
    """Yield what the child tells, until it or the time has ended.

    A process that the package forked may hold the pipe open for longer.
    """
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        while (left_s := deadline_s - time.monotonic()) > 0:
            ended = child.poll() is not None
            if not selector.select(0 if ended else min(left_s, _LOOK_S)):
                if ended:
                    return
                continue
            data = os.read(read_end, _READ_BYTES)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from map(json.loads, lines)


def _tell_unfinished(done: set[str], why: str, mend: str, listener: Listener) -> None:
    """Blame the first check that did not end: it ran, or what comes before it did."""
    blamed = next(check for check in PROBE_CHECKS if check not in done)
    for check in PROBE_CHECKS:
        if check == blamed:
            listener(Finding(check, Verdict.FAIL, why, mend))
        elif check not in done:
            listener(Finding(check, Verdict.SKIP, f"needs {blamed}"))


def _describe_end(child: subprocess.Popen[bytes]) -> str:
    code = child.returncode
    if code < 0:
        return f"the process was killed by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"


def _stop(child: subprocess.Popen[bytes]) -> None:
    # A child that is done ends by itself at once, and tells its exit code.
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(0.5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _variables() -> dict[str, str]:
    return {
        **os.environ,  # noqa: TID251 - a child inherits
        "OPENENV_MAX_CONCURRENT_ENVS": _SESSIONS,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


if __name__ == "__main__":
    main()
