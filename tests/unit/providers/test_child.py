"""The end of a child, whatever it does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from tests.support.processes import is_gone, wait_until

from openenv.core.containers.runtime._child import Child

_TOLD = re.compile(r"pid (\d+)")
_SAYS = "print('pid', os.getpid(), flush=True); time.sleep(60)"
LEAVES_ITS_GROUP = f"import os, time; os.setpgid(0, 0); {_SAYS}"
LEAVES_ITS_SESSION = f"import os, time; os.setsid(); {_SAYS}"
AND_IGNORES_SIGTERM = f"import signal; signal.signal(15, 1); {LEAVES_ITS_GROUP}"
GRANDCHILD_LEAVES = (
    "import subprocess, sys; "
    f"sys.exit(subprocess.call([sys.executable, '-c', {LEAVES_ITS_GROUP!r}]))"
)


def start(code, **options):
    command = [sys.executable, "-c", code]
    child = Child("a server", command, {}, told=_TOLD, **options)
    wait_until(lambda: child._address, 10)
    return child, int(child._address)


def open_files():
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize(
    "code",
    [LEAVES_ITS_GROUP, LEAVES_ITS_SESSION, AND_IGNORES_SIGTERM, GRANDCHILD_LEAVES],
)
def test_a_server_that_leaves_its_group_is_stopped(code):
    child, pid = start(code)
    child.stop(1.0)

    wait_until(lambda: is_gone(pid), 5)


def test_a_daemon_that_holds_the_output_keeps_neither_thread_nor_file():
    daemon = (
        "import os, subprocess, time; "
        "subprocess.Popen(['sleep', '8'], start_new_session=True); "
        "print('pid', os.getpid(), flush=True); os._exit(0)"
    )
    before, running = open_files(), set(threading.enumerate())
    for _ in range(3):
        child, _pid = start(daemon)
        child.stop(1.0)

    assert before == open_files()
    assert set(threading.enumerate()) <= running


def test_an_error_shows_a_bounded_and_printable_end_of_the_output():
    noise = (
        "import os, time; os.write(1, b'start' + b'x' * 5_000_000); "
        "os.write(1, b'\\n\\x1b[31mred\\x00\\npid 1\\n'); time.sleep(60)"
    )
    child, _pid = start(noise)
    child.stop(1.0)
    told = child.last_lines()

    assert len(told) < 9000
    assert r"\x1b[31mred\x00" in told
    assert told.isascii()
    assert told.replace("\n", "").isprintable()


@pytest.mark.parametrize("code", [LEAVES_ITS_GROUP, GRANDCHILD_LEAVES])
def test_it_ends_with_its_owner_too(code):
    owner = textwrap.dedent(f"""
        import os, time
        from openenv.core.containers.runtime._child import Child
        from tests.unit.providers import test_child
        print(test_child.start({code!r})[1], flush=True)
        os.kill(os.getpid(), 9)
    """)
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", owner],
        env={**os.environ, "PYTHONPATH": path},  # noqa: TID251 - handed on
        stdout=subprocess.PIPE,
        timeout=20,
        check=False,
    )

    wait_until(lambda: is_gone(int(done.stdout)), 5)
