"""The end of a child, whatever it does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import pytest
from tests.support.processes import wait_until

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


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    "code",
    [LEAVES_ITS_GROUP, LEAVES_ITS_SESSION, AND_IGNORES_SIGTERM, GRANDCHILD_LEAVES],
)
def test_a_server_that_leaves_its_group_is_stopped(code):
    child, pid = start(code)
    child.stop(1.0)

    wait_until(lambda: is_gone(pid), 5)


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
