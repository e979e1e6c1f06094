"""Golden applications, each served once by a real process, started on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.golden.replay import Replayer
from tests.support.processes import ROOT, ChildProcess

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

GOLDEN = ROOT / "tests" / "conformance" / "golden"


class GoldenServers:
    """One server process an application, run by the interpreter given."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._running: dict[str, ChildProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in self._running.values():
            child.stop()

    def port(self, app: str) -> int:
        """The port of the server of `app`, started if it is not running yet."""
        if app not in self._running:
            command = [self._python, str(GOLDEN / "serve.py"), app]
            self._running[app] = ChildProcess(command)
        return self._running[app].wait_for_port()

    def replayer(self, app: str) -> Replayer:
        """A replayer for the server of `app`."""
        return Replayer(self.port(app))

    def log(self, app: str) -> str:
        """What the server of `app` has written, tracebacks included."""
        return self._running[app].output()
