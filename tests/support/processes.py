"""Child processes of tests: start, learn the port, read the output, stop.

A child tells its port as the line `PORT <n>` on standard output. Its output goes to
a file, so that a full pipe never blocks it and a failure can show what it said.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 60.0  # importing upstream takes eight seconds, more on a busy machine
STOP_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.01

_RESET_SIGINT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""

T = TypeVar("T")


class ChildProcess:
    """A child in a process group of its own, stopped whole by `stop()`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        inherit: bool = True,
    ) -> None:
        inherited = os.environ if inherit else {}  # noqa: TID251 - handed on
        self._log = tempfile.NamedTemporaryFile(suffix=".log", prefix="openenv-test-")  # noqa: SIM115 - closed by stop()
        self._process = subprocess.Popen(
            interruptible(command),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**inherited, **(environment or {})},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def output(self) -> str:
        """Everything that the child has written so far."""
        return Path(self._log.name).read_text(errors="replace")

    def wait_for_port(self) -> int:
        """Return the port the child tells; fails with its output if it ends first."""
        return int(self.wait_for_line(r"^PORT (\d+)$").group(1))

    def wait_for_line(
        self, pattern: str, timeout_s: float = START_TIMEOUT_S
    ) -> re.Match[str]:
        """Return the first match of `pattern` (multi-line) in the child's output."""

        def look() -> re.Match[str] | None:
            ended = self.returncode is not None
            found = re.search(pattern, self.output(), re.MULTILINE)
            assert found or not ended, f"child ended early:\n{self.output()}"
            return found

        return wait_until(look, timeout_s, lambda: f"no {pattern!r}:\n{self.output()}")

    def wait(self, timeout_s: float) -> int:
        """Wait for the end of the child and return its exit code."""
        return self._process.wait(timeout_s)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the child's whole process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def threads(self) -> int:
        """The number of threads the kernel counts in the child now."""
        return int(self._status("Threads"))

    def _status(self, field: str) -> str:
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{field}:\s*(\d+)", text, re.MULTILINE)
        assert found, f"/proc/{self.pid}/status has no {field}"
        return found.group(1)

    def stop(self) -> None:
        """Terminate the group, kill what is left, and remove the log."""
        if self.returncode is None:
            self.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
        self.send_signal(signal.SIGKILL)
        self._process.wait(STOP_TIMEOUT_S)
        self._log.close()


def interruptible(command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` with SIGINT as a terminal leaves it.

    A shell starts background jobs (`make test &`) with SIGINT ignored, and what is
    ignored stays so in all their children. Not with `preexec_fn`, which runs Python
    in the forked child of a process that has threads.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _RESET_SIGINT, *command]


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended and was reaped, which may take a moment."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(
    condition: Callable[[], T | None],
    timeout_s: float,
    complaint: Callable[[], str] = lambda: "condition not met in time",
) -> T:
    """Poll `condition` until it is true and return its value."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, complaint()
        time.sleep(POLL_INTERVAL_S)
    return value
