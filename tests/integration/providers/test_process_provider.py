"""`openenv serve` as a child: its port, its end, its failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.processes import ROOT, wait_until

from openenv.core.containers.runtime import ProcessProvider
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ProviderError

GRID_WORLD = ROOT / "envs/grid_world_env"
_OWNER = """
import os, sys, time
from openenv.core.containers.runtime import ProcessProvider
provider = ProcessProvider(sys.argv[1])
provider.start()
forked = os.fork() if "fork" in sys.argv else 0
if not forked and "fork" in sys.argv:
    time.sleep(600)
print(provider._process.pid, forked, flush=True)
sys.stdin.read()
"""
_GRANDCHILD = (
    "import subprocess, sys\n"
    "code = 'import signal, time; signal.signal(15, 1); time.sleep(600)'\n"
    "subprocess.Popen([sys.executable, '-c', code])\n"
    "from grid_world_env.server.app import app\n"
)


@pytest.fixture
def broken(tmp_path):
    """Make a package whose application does what it is told when imported."""

    def make(code):
        (tmp_path / "openenv.yaml").write_text("name: broken\napp: broken_app:app\n")
        (tmp_path / "broken_app.py").write_text(code)
        return tmp_path

    return make


def group_members(group):
    """The living processes of a group."""
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            members.append(int(path.parent.name))
    return members


def test_an_episode(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with GenericEnvClient(provider=ProcessProvider(GRID_WORLD)).sync() as env:
        assert not env.reset(seed=1).done
        first = env.base_url
        env.close()
        assert env.base_url is None
        assert not env.reset(seed=1).done  # starts it again

    assert first.startswith("http://127.0.0.1:")


def test_two_at_once_have_ports_of_their_own():
    providers = [ProcessProvider(GRID_WORLD) for _ in range(2)]
    try:
        urls = {provider.start() for provider in providers}
    finally:
        for provider in providers:
            provider.stop()

    assert 2 == len(urls)


def test_an_early_exit_is_told_within_a_second(broken):
    folder = broken(
        "import os, time\n"
        "print('my last words', time.monotonic(), flush=True)\n"  # one clock for all
        "os._exit(3)\n"
    )
    with pytest.raises(ProviderError, match="exit code 3") as raised:
        ProcessProvider(folder).start()
    told_at = time.monotonic()
    last_words = str(raised.value).splitlines()[-1]
    words, _, ended_at = last_words.rpartition(" ")

    assert "my last words" == words
    assert told_at - float(ended_at) < 1


def test_a_killed_server_is_told(broken):
    folder = broken("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(ProviderError, match="killed by SIGKILL"):
        ProcessProvider(folder).start()


def test_a_server_that_never_listens(broken):
    folder = broken("import time; time.sleep(600)")
    provider = ProcessProvider(folder, context_timeout_s=1)
    with pytest.raises(TimeoutError, match="did not listen in time"):
        provider.start()


def test_an_environment_that_is_not_there(tmp_path):
    with pytest.raises(ProviderError, match=r"no\s+openenv\.yaml"):
        ProcessProvider(tmp_path / "nowhere").start()


def test_the_whole_group_ends(broken):
    # A grandchild that ignores SIGTERM, as a browser's helper may.
    provider = ProcessProvider(broken(_GRANDCHILD), env_vars={"PYTHONPATH": _path()})
    provider.start()
    group = provider._process.pid
    assert len(group_members(group)) >= 3
    provider.stop()

    assert [] == group_members(group)


@pytest.fixture
def owner():
    """Start owners; gives each with the group of its server and its forked child."""
    processes, forked_children = [], []

    def start(folder, *how):
        process = subprocess.Popen(
            [sys.executable, "-c", _OWNER, str(folder), *how],
            env={**os.environ, "PYTHONPATH": _path()},  # noqa: TID251 - handed on
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        processes.append(process)
        group, forked = map(int, process.stdout.readline().split())
        forked_children.extend([forked] if forked else [])
        return process, group, forked

    yield start
    for forked in forked_children:
        os.kill(forked, signal.SIGKILL)
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_group_ends_with_its_owner(owner, number):
    process, group, _ = owner(GRID_WORLD)
    assert len(group_members(group)) >= 2
    process.send_signal(number)
    process.wait(5)

    wait_until(lambda: not group_members(group), 5)


def test_it_does_also_where_a_grandchild_ignores_sigterm(owner, broken):
    process, group, _ = owner(broken(_GRANDCHILD))
    assert len(group_members(group)) >= 3
    process.kill()
    process.wait(5)

    wait_until(lambda: not group_members(group), 5)


def test_it_does_also_where_the_owner_has_forked(owner):
    process, group, forked = owner(GRID_WORLD, "fork")
    process.kill()
    process.wait(5)

    wait_until(lambda: not group_members(group), 5)
    os.kill(forked, 0)  # lives


def test_an_exit_handler_may_close_the_client():
    code = (
        "import atexit, sys\n"
        "from openenv.core.containers.runtime import ProcessProvider\n"
        "from openenv.core.generic_client import GenericEnvClient\n"
        "client = GenericEnvClient(provider=ProcessProvider(sys.argv[1]))\n"
        "client.connect()\n"
        "atexit.register(client.close)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(GRID_WORLD)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_a_start_that_is_interrupted(broken):
    provider = ProcessProvider(broken("import time; time.sleep(600)"))
    timer = threading.Timer(0.5, provider.interrupt)
    timer.start()
    with pytest.raises(ProviderError, match="was interrupted"):
        provider.start()
    timer.join()


def test_a_server_killed_in_mid_episode():
    provider = ProcessProvider(GRID_WORLD)
    with GenericEnvClient(provider=provider).sync() as env:
        env.reset(seed=1)
        os.killpg(provider._process.pid, signal.SIGKILL)
        with pytest.raises((ConnectionError, RuntimeError)):
            env.step({"direction": "up"})


def test_of_starts_in_many_threads_one_starts(monkeypatch):
    provider = ProcessProvider(GRID_WORLD)
    launch = provider._launch
    meeting = threading.Barrier(3)
    children = []

    def all_at_once(*args):
        child = launch(*args)
        children.append(child)
        meeting.wait(10)  # until the others were refused, or are here as well
        return child

    def start(_):
        try:
            return provider.start()
        except ProviderError as exc:
            meeting.wait(10)
            return str(exc)

    monkeypatch.setattr(provider, "_launch", all_at_once)
    with ThreadPoolExecutor(3) as threads:
        told = sorted(threads.map(start, range(3)))
    provider.stop()
    try:
        assert 1 == len(children)
        assert told[0].startswith("ProcessProvider is already running")
        assert told[0] == told[1]
        assert told[2].startswith("http://127.0.0.1:")
    finally:
        for child in children:
            child.stop(0.0)


def test_what_must_not_be_done_twice_or_too_early():
    provider = ProcessProvider(GRID_WORLD)
    with pytest.raises(ProviderError, match="has not been started"):
        provider.wait_for_ready()
    with pytest.raises(ProviderError, match="has not been started"):
        _ = provider.base_url
    with provider, pytest.raises(ProviderError, match="already running"):
        provider.start()
    provider.stop()

    with pytest.raises(ValueError, match=r"unsupported arguments.*colour"):
        provider.start(colour="blue")


def _path():
    return os.pathsep.join(filter(None, sys.path))


def test_what_the_environment_prints_is_not_taken_for_the_servers_address(broken):
    folder = broken(
        "print('mine is served on http://127.0.0.1:1', flush=True)\n"
        "print('Uvicorn running on http://127.0.0.1:1', flush=True)\n"
        "from grid_world_env.server.app import app\n"
    )
    provider = ProcessProvider(folder, env_vars={"PYTHONPATH": str(ROOT / "envs")})
    with GenericEnvClient(provider=provider).sync() as env:
        assert not env.reset(seed=1).done
        assert not env.base_url.endswith(":1")
