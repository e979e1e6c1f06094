"""The environment's server as a child process, never left behind.

The child leads its own process group, so Ctrl-C in the terminal reaches only the parent
and the whole group can be stopped. It tells on a pipe its port when it accepts
connections, or what is wrong with the manifest's application. Its standard input is a
pipe that the parent never writes to: the end of it tells the child that the parent is
gone, however that came about.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from openenv.rollout._config import server_environment
from openenv.rollout.errors import InvalidRollout, ServerFailed

if TYPE_CHECKING:
    from types import TracebackType

    from openenv.rollout.environment import EnvironmentFolder

# An environment may load large libraries or assets before it answers.
START_TIMEOUT_S: Final = 120.0
# More than our own server takes to close its sessions (10 s), then it is killed.
STOP_TIMEOUT_S: Final = 12.0
# What an error message shows of the server's output, and what is kept of it.
_SHOWN_LINES: Final = 20
_KEPT_LINES: Final = 200
_MAX_LINE_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 64 * 1024


class ChildServer:
    """Run an environment's server; use it as an async context manager.

    Args:
        environment: whose server.
        sessions: how many sessions it must take at the same time.
        start_timeout_s: seconds until it must accept connections.
    """

    def __init__(
        self,
        environment: EnvironmentFolder,
        sessions: int,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._environment = environment
        self._sessions = sessions
        self._start_timeout_s = start_timeout_s
        self._process: asyncio.subprocess.Process | None = None
        self._output: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._drain: asyncio.Task[None] | None = None
        self.base_url: str = ""

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def wait_exit(self) -> ServerFailed:
        """Wait until the server has ended by itself; return the error to raise."""
        # Called between start and stop only: there is a process.
        process = self._running()
        await process.wait()
        return await self._failure("ended")

    async def stop(self) -> None:
        """Stop the whole process group; a second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        _signal_group(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            _signal_group(process, signal.SIGKILL)
            await process.wait()
        finally:
            # Grandchildren may have outlived their parent, or a second Ctrl-C cut the
            # waiting short.
            _signal_group(process, signal.SIGKILL)
            if self._drain is not None:
                self._drain.cancel()

    @property
    def process_id(self) -> int:
        """The server's process id, which is its process group's too."""
        return self._running().pid

    async def _start(self) -> None:
        read_end, write_end = os.pipe()
        try:
            self._process = await self._spawn(write_end)
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self._drain = asyncio.create_task(self._keep_output(self._process))
        port = await self._read_port(read_end)
        self.base_url = f"http://127.0.0.1:{port}"

    async def _spawn(self, ready_fd: int) -> asyncio.subprocess.Process:
        folder = str(self._environment.folder)
        arguments = ["-m", "openenv.rollout._server", "--folder", folder]
        arguments += ["--app", self._environment.app, "--ready-fd", str(ready_fd)]
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(ready_fd,),
            start_new_session=True,
            env=server_environment(self._sessions),
        )

    async def _read_port(self, read_end: int) -> int:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader),
            os.fdopen(read_end, "rb", buffering=0),
        )
        try:
            async with asyncio.timeout(self._start_timeout_s):
                line = await reader.readline()
        except TimeoutError:
            late = f"was not ready within {self._start_timeout_s:g} s"
            raise self._explain(late) from None
        finally:
            transport.close()
        if not line:
            await self._running().wait()
            raise await self._failure("ended before it was ready")
        told = json.loads(line)
        if "error" in told:
            raise InvalidRollout(told["error"])
        return int(told["port"])

    async def _keep_output(self, process: asyncio.subprocess.Process) -> None:
        # Its stdout was asked for as a pipe.
        stream = process.stdout
        rest = b""
        while stream is not None and (data := await stream.read(_READ_BYTES)):
            *lines, rest = (rest + data).split(b"\n")
            self._output.extend(lines)
            rest = rest[-_MAX_LINE_BYTES:]
        if rest:
            self._output.append(rest)

    async def _failure(self, what: str) -> ServerFailed:
        # A grandchild may hold the output open; what came until now is enough then.
        if self._drain is not None:
            await asyncio.wait({self._drain}, timeout=1.0)
        code = self._running().returncode
        return self._explain(f"{what} ({_describe_exit(code)})")

    def _explain(self, what: str) -> ServerFailed:
        shown = [line.decode(errors="replace").rstrip() for line in self._output]
        tail = "\n".join(f"  {line}" for line in shown[-_SHOWN_LINES:])
        output = f"; its last output:\n{tail}" if tail else "; it printed nothing"
        return ServerFailed(f"the server of {self._environment.name} {what}{output}")

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            message = f"the server of {self._environment.name} is not running"
            raise ServerFailed(message)
        return self._process


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    # The group is named by its leader's id; it is gone when its last process is.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "still running"
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"
