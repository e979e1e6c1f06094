"""Who started a container: labels that tell a later process whether it still lives.

A process id alone says little: it is used again, means another process on another
machine, and yet another in a container that shares the engine. So the labels name the
machine together with its namespace of process ids, the id, and when that process
started.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST_LABEL: Final = "openenv.owner.host"
PID_LABEL: Final = "openenv.owner.pid"
STARTED_LABEL: Final = "openenv.owner.started"

_PROC: Final = Path("/proc")
_ENDED: Final = "ended"  # no process's start
_STATE, _START_TICKS = 0, 19  # of /proc/<pid>/stat behind the name (proc(5))


def own_labels() -> dict[str, str]:
    """Return the labels of what this process starts."""
    pid = os.getpid()
    return {
        HOST_LABEL: _host(),
        PID_LABEL: str(pid),
        STARTED_LABEL: _started(pid) or "",
    }


def is_orphaned(labels: Mapping[str, str]) -> bool:
    """Tell whether a process of this machine set the labels and is gone.

    False wherever that cannot be known, such as for another machine's.
    """
    pid = labels.get(PID_LABEL, "")
    if labels.get(HOST_LABEL) != _host() or not pid.isdecimal():
        return False
    started, known = _started(int(pid)), labels.get(STARTED_LABEL)
    if started is None:  # gone, or another user's where /proc hides those (proc(5))
        return _is_gone(int(pid))
    return bool(known) and started != known


def _host() -> str:
    # A hostname may be "localhost" on many machines.
    machine = _read(Path("/etc/machine-id"))
    try:
        namespace = str((_PROC / "self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return " ".join(filter(None, (platform.node(), machine, namespace)))


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's; a number that is no process id
        return False
    return False


def _started(pid: int) -> str | None:
    """Return when a process started, in any unit that tells two of them apart.

    None where that cannot be read.
    """
    if sys.platform != "linux":
        return _started_by_ps(pid)
    # The name may hold blanks and brackets; it ends at the last one.
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    boot = _read(_PROC / "sys/kernel/random/boot_id")
    if not fields or not boot:
        return None
    if fields[_STATE] in {"Z", "X"}:  # has ended, though its id is still taken
        return _ENDED
    return f"{boot} {fields[_START_TICKS]}"


def _started_by_ps(pid: int) -> str | None:
    command = ("ps", "-o", "lstart=", "-p", str(pid))
    told = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return told.stdout.strip() or None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
