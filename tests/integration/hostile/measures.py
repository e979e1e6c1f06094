"""What a process holds now: files, threads, tasks, memory; and guards around it."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import re
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.integration.client.scripted import until
from tests.support.processes import wait_until

from openenv.core._client.sockets import hub_of

RESET_PEAK = "5"  # proc(5), /proc/PID/clear_refs: VmHWM becomes VmRSS


def open_files(process: int | str = "self") -> int:
    """Count the open files of a process."""
    count = len(list(Path(f"/proc/{process}/fd").iterdir()))
    return count - (process == "self")  # the listing itself is open meanwhile


def memory_mib(field: str, process: int | str = "self") -> float:
    """Return `VmRSS` (now) or `VmHWM` (at most so far) in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(rf"{field}:\s*(\d+) kB", status).group(1)) / 1024


@contextmanager
def memory_within(limit_mib: float, process: int | str = "self"):
    """Check that the block's peak of resident memory is below what was and a limit."""
    if process == "self":
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free would hide what is taken
    Path(f"/proc/{process}/clear_refs").write_text(RESET_PEAK)
    before = memory_mib("VmRSS", process)
    yield
    grown_mib = memory_mib("VmHWM", process) - before

    assert grown_mib <= limit_mib, f"{grown_mib:.1f} MiB more than before"


@contextmanager
def leaving_no_file():
    """Check that a block, outside any loop, leaves no file and no thread."""
    threads, files = threading.active_count(), open_files()
    yield
    gc.collect()
    wait_until(lambda: open_files() <= files, 5.0)

    assert threads >= threading.active_count()


@asynccontextmanager
async def leaving_nothing():
    """Check that a block leaves no task, file or thread, and no word to the loop."""
    loop, told = asyncio.get_running_loop(), []
    hub_of(loop)  # has descriptors of its own for as long as the loop lives
    loop.set_exception_handler(lambda _loop, context: told.append(context))
    tasks, threads, files = asyncio.all_tasks(), threading.active_count(), open_files()
    yield
    gc.collect()  # a task or future whose error nobody saw speaks now
    await until(lambda: asyncio.all_tasks() <= tasks)
    await until(lambda: open_files() <= files)

    assert threads >= threading.active_count()
    assert [] == told
