"""A child process of a provider: its output kept, its group ended whole.

The child is a guard (`_guard`) that leads a process group of its own and runs the
command in it. So Ctrl-C in the terminal reaches only this process, the whole group can
be ended, and it ends by itself when this process is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from openenv.core.containers.runtime import _guard
from openenv.core.containers.runtime._lifeline import Lifeline
from openenv.core.containers.runtime._output import SHOWN_LINES, shown
from openenv.core.containers.runtime._output_reader import OutputReader
from openenv.core.containers.runtime._readiness import POLL_INTERVAL_S
from openenv.errors import ProviderError

if TYPE_CHECKING:
    import re
    import threading
    from collections.abc import Mapping, Sequence

STOP_TIMEOUT_S: Final = 10.0
_GUARD_TIMEOUT_S: Final = 2.0  # it may be stopped by a signal
_LAST_WORDS_S: Final = 1.0  # a grandchild may hold the output open for ever


class Child:
    """Run a command until it ends or is stopped.

    Args:
        name: What an error calls it.
        command: Program and arguments.
        env_vars: Added to this process's environment.
        folder: Where it runs; None for the current one.
        told: Matches the line by which it tells its address, the first group.

    Raises:
        ProviderError: It cannot be started.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env_vars: Mapping[str, str],
        folder: str | None = None,
        told: re.Pattern[str] | None = None,
    ) -> None:
        self.name = name
        self._lines: deque[str] = deque(maxlen=SHOWN_LINES)
        self._told = told
        self._address: str | None = None
        self._lifeline = Lifeline()
        output, childs_output = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the caller asked for
                [sys.executable, "-I", "-S", str(_guard.__file__), *command],
                stdin=self._lifeline.read_end,
                stdout=childs_output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **env_vars},  # noqa: TID251 - handed on
                start_new_session=True,
            )
        except OSError as exc:
            self._lifeline.close()
            os.close(output)
            message = f"cannot start {name}: {exc}"
            raise ProviderError(message) from exc
        finally:
            self._lifeline.hand_over()
            os.close(childs_output)
        self._reader = OutputReader(
            output, f"openenv-output-{self._process.pid}", self._hear
        )

    @property
    def pid(self) -> int:
        """The child's process id, which is its process group's too."""
        return self._process.pid

    def refuse_ended(self) -> None:
        """Do nothing while it runs.

        Raises:
            ProviderError: It has ended; says how, and shows its last 50 lines.
        """
        code = self._process.poll()
        if code is not None:
            self._reader.wait(_LAST_WORDS_S)
            message = f"{self.name} ended early ({_exit(code)}){self.last_lines()}"
            raise ProviderError(message)

    def wait_for_address(self, deadline: float, interrupted: threading.Event) -> str:
        """Wait until the child has told its address, and return that.

        Raises:
            ProviderError: It ended first, or the waiting was interrupted.
            TimeoutError: It told none by the deadline (of the monotonic clock).
        """
        while self._address is None:
            self.refuse_ended()
            if time.monotonic() >= deadline:
                message = f"{self.name} did not listen in time{self.last_lines()}"
                raise TimeoutError(message)
            if interrupted.wait(POLL_INTERVAL_S):
                message = f"the start of {self.name} was interrupted"
                raise ProviderError(message)
        return self._address

    def wait(self, deadline: float, interrupted: threading.Event) -> int:
        """Wait until it has ended and return its exit code; errors as above."""
        while (code := self._process.poll()) is None:
            if time.monotonic() >= deadline:
                message = f"{self.name} did not end in time{self.last_lines()}"
                raise TimeoutError(message)
            if interrupted.wait(POLL_INTERVAL_S):
                message = f"{self.name} was interrupted"
                raise ProviderError(message)
        self._reader.wait(_LAST_WORDS_S)
        return code

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the whole group: SIGTERM, and after so many seconds SIGKILL."""
        self._process.terminate()  # the guard hands it on
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        if self._process.returncode is None:
            # The guard ends what has left the group, then the group.
            self._process.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GUARD_TIMEOUT_S)
        # Also when the leader has ended: its children may not have.
        self._kill_group()
        self._process.wait()
        self._reader.wait(_LAST_WORDS_S)
        self._reader.close()
        self._lifeline.close()

    def last_lines(self) -> str:
        """Return the end of an error's sentence that shows the last output."""
        return shown("\n".join(self._lines))

    def _hear(self, line: str) -> None:
        if self._told is not None and (found := self._told.search(line)):
            self._address = found[1]
            self._told = None
        else:
            self._lines.append(line)

    def _kill_group(self) -> None:
        # The group is named by its leader's id; it is gone when its last process is.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"
