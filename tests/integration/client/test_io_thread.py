"""The process's I/O thread: Ctrl-C, exit, fork. Each in a process of its own."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import textwrap

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.support.processes import ChildProcess, wait_until

HEAD = """
import asyncio, gc, os, signal, sys, threading, time, warnings
from openenv.core.generic_client import GenericEnvClient
url = sys.argv[1]
"""


@pytest.fixture
def server():
    with scripted_in_thread() as running:
        yield running


def run(server, code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    program = HEAD + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, *flags, "-c", program, server.url],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_an_exit_with_open_clients_does_not_hang_and_says_goodbye(server):
    done = run(
        server,
        """
        clients = [GenericEnvClient(url) for _ in range(5)]
        for client in clients:
            client.reset()
        """,
        "-Werror",
    )

    assert ("", 0) == (done.stderr, done.returncode)
    wait_until(lambda: server.said_goodbye == 5, 5)


def test_an_exit_in_the_middle_of_a_call_of_another_thread_does_not_hang(server):
    done = run(
        server,
        """
        client = GenericEnvClient(url)
        client.reset()
        def think():
            try:
                client.step({"sleep": 30})
            except BaseException:
                pass
        threading.Thread(target=think, daemon=True).start()
        time.sleep(0.2)
        """,
    )

    assert ("", 0) == (done.stderr, done.returncode)


def test_a_call_that_the_exit_cuts_off_is_told_so_by_a_typed_error(server):
    done = run(
        server,
        """
        client = GenericEnvClient(url)
        client.reset()
        def think():
            try:
                client.step({"sleep": 30})
            except BaseException as exc:
                os.write(1, f"{type(exc).__name__}: {exc}".encode())
        thread = threading.Thread(target=think, daemon=True)
        thread.start()
        time.sleep(0.2)
        from openenv.core._client import io_thread
        # Run before the interpreter stops its daemon threads for good.
        io_thread._stop_at_exit()
        thread.join(5)
        """,
    )

    assert done.stdout.startswith("ConnectionClosed: "), done
    assert "exiting" in done.stdout


def test_a_call_from_an_exit_handler_is_refused_or_served_but_never_hangs(server):
    done = run(
        server,
        """
        import atexit
        client = GenericEnvClient(url)
        atexit.register(client.close)
        client.reset()
        atexit.register(client.close)
        """,
        "-Werror",
    )

    assert ("", 0) == (done.stderr, done.returncode)


def test_a_client_forgotten_after_its_loop_was_closed_roughly_warns(server):
    done = run(
        server,
        """
        loop = asyncio.new_event_loop()
        client = GenericEnvClient(url)
        loop.run_until_complete(client.reset_async())
        loop.close()  # without shutdown_asyncgens, as nobody should
        del client
        """,
        "-Wdefault",
    )

    assert "ResourceWarning: unclosed client" in done.stderr
    assert 0 == done.returncode


def test_a_forked_child_has_a_thread_of_its_own(server):
    done = run(
        server,
        """
        client = GenericEnvClient(url)
        other = GenericEnvClient(url)
        other.reset()
        parent = client.reset().observation["session"]
        # From Python 3.12 on; that the library copes with it is what is tested.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        pid = os.fork()
        if pid == 0:
            own = GenericEnvClient(url)
            print(own.reset().observation["session"] - parent, flush=True)
            own.close()
            print(type(client.reset()).__name__, flush=True)
            client.close()
            del other
            gc.collect()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print(client.step({"it": 1}).observation["session"] - parent)
        print(other.step({"it": 1}).observation["steps"])
        client.close()
        other.close()
        """,
        "-Wdefault",
    )

    assert ("1\nStepResult\n0\n1\n", "", 0) == (
        done.stdout,
        done.stderr,
        done.returncode,
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_forked_child_ends_as_any_process(server, host):
    done = run(
        server,
        f"""
        url = url.replace("127.0.0.1", "{host}")
        GenericEnvClient(url).sync().connect().close()
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        print(os.waitpid(pid, 0)[1])
        """,
        "-Wdefault",
    )

    assert ("0\n", "", 0) == (done.stdout, done.stderr, done.returncode)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_process_with_closed_standard_streams_ends_in_order(server, closed):
    body = f"with GenericEnvClient({server.url!r}).sync() as env: env.reset()"
    closing = " ".join(f"{descriptor}<&-" for descriptor in closed)
    code = f"from openenv import GenericEnvClient\n{body}"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {closing}"
    done = subprocess.run(command, shell=True, timeout=30, check=False)

    assert 0 == done.returncode


def test_ctrl_c_in_a_waiting_call_leaves_the_client_usable(server):
    code = HEAD + textwrap.dedent(
        """
        client = GenericEnvClient(url)
        client.reset()
        print("WAITING", flush=True)
        try:
            client.step({"it": "old", "sleep": 2.0})
        except KeyboardInterrupt:
            print("INTERRUPTED", flush=True)
        print(client.step({"it": "new"}).observation["echo"]["it"], flush=True)
        client.close()
        print("DONE", flush=True)
        """
    )
    command = [sys.executable, "-c", code, server.url]
    with ChildProcess(command) as child:
        child.wait_for_line(r"^WAITING$")
        _until_step_is_in(server)
        child.send_signal(signal.SIGINT)
        child.wait_for_line(r"^DONE$", 10)

        assert "WAITING\nINTERRUPTED\nnew\nDONE\n" == child.output()


def _until_step_is_in(server) -> None:
    wait_until(lambda: any(m["type"] == "step" for m in server.received), 5)


def test_the_library_leaves_policy_and_signals_alone(server):
    done = run(
        server,
        """
        policy = type(asyncio.get_event_loop_policy())
        handler = signal.getsignal(signal.SIGINT)
        before = dict(os.environ)
        with GenericEnvClient(url) as client:
            client.reset()
        assert type(asyncio.get_event_loop_policy()) is policy
        assert signal.getsignal(signal.SIGINT) is handler
        assert dict(os.environ) == before
        print(sorted(t.name for t in threading.enumerate()))
        """,
    )

    assert "['MainThread', 'openenv-io']\n" == done.stdout, done.stderr
