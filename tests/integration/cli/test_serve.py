"""`openenv serve` from the outside: every way to name and to listen."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager

import pytest
from tests.integration.cli.packages import make_good, replace
from tests.support.processes import ROOT, ChildProcess, wait_until

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed

# Answers every request, and takes no framework to import.
SMALL = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"status": "healthy"}'})
"""
TELLS_ITS_END = """
async def told(scope, receive, send):
    await app(scope, receive, send)
    if scope["type"] == "lifespan":
        print("ended in order", flush=True)
"""
WAYS = [
    ["-p", "0"],
    ["-p", "0", "--workers", "2"],
    ["-p", "0", "--reload"],
    ["--uds", "s"],
]
URL = r"is served on (http://\S+:\d+)"


@contextmanager
def serving(cwd, *arguments, **variables):
    command = [sys.executable, "-m", "openenv.cli", "serve", *map(str, arguments)]
    environment = {"PYTHONPATH": f"{ROOT / 'envs'}", "COLUMNS": "80", **variables}
    with ChildProcess(command, environment=environment, cwd=cwd) as child:
        yield child


def play(url, **options):
    with GenericEnvClient(url, **options).sync() as client:
        client.reset(seed=1)
        return client.step({"guess": 50}).observation["hint"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read_health(url):
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return json.load(answer)["status"]
    except OSError:
        return None


def is_open(url):
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.socket() as peer:
        return peer.connect_ex((host, int(port))) == 0


def play_on(session):
    session.reset(seed=1)
    return session.step({"guess": 50}).observation


def tell_process(folder):
    """Let each observation name the process that made it."""
    for name, old, new in (
        (
            "models.py",
            "    tries_left: int",
            "    process: int = 0\n    tries_left: int",
        ),
        (
            "server/environment.py",
            "tries_left=tries_left",
            "process=os.getpid(), tries_left=tries_left",
        ),
        ("server/environment.py", "import random", "import os\nimport random"),
    ):
        replace(name, old, new)(folder)


def status_by(path, route="/health", headers=""):
    """Ask through a Unix socket; the status, or None where nobody answers yet."""
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(str(path))
            request = f"GET {route} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"
            peer.sendall(request.encode())
            return int(peer.recv(1024).split()[1])
        except (OSError, IndexError):
            return None


def served(output, folder):
    """Tell whether what the output names answers."""
    found = re.search(URL, output)
    if found is None:
        return status_by(folder / "s") == 200
    return read_health(found.group(1)) == "healthy"


@pytest.mark.parametrize("target", [".", "my_env", "my_env.server.app:app"])
def test_a_folder_a_name_and_a_module_are_served(tmp_path, target):
    folder = make_good("typed", tmp_path)

    with serving(folder if target == "." else tmp_path, target, "-p", 0) as child:
        url = child.wait_for_line(URL).group(1)

        assert play(url) in {"higher", "lower"}
        assert f'call it: GenericEnvClient("{url}")' in child.output()


def test_several_workers_each_hold_sessions(tmp_path):
    tell_process(make_good("typed", tmp_path))

    with serving(tmp_path, "my_env", "--workers", 2, "-p", 0) as child:
        url = child.wait_for_line(URL).group(1)
        with ExitStack() as stack:
            processes = {}

            def two_have_some():
                # Whoever is up and awake takes a connection.
                session = stack.enter_context(GenericEnvClient(url).sync())
                processes[session] = play_on(session)["process"]
                return len(set(processes.values())) == 2

            wait_until(two_have_some, 40.0)
            again = {session: play_on(session)["process"] for session in processes}
        output = child.output()

    assert processes == again
    assert child.pid not in processes.values()
    assert "2 processes: a session stays with its own, so use /ws" in output
    assert "Traceback" not in output


def test_a_worker_that_dies_is_replaced(tmp_path):
    tell_process(make_good("typed", tmp_path))

    with serving(tmp_path, "my_env", "--workers", 2, "-p", 0) as child:
        url = child.wait_for_line(URL).group(1)
        with GenericEnvClient(url).sync() as session:
            os.kill(play_on(session)["process"], signal.SIGKILL)

        assert {"higher", "lower"} >= {play(url) for _ in range(4)}
        assert child.returncode is None


def test_workers_that_cannot_start_end_the_command(tmp_path):
    folder = make_good("typed", tmp_path)
    source = folder / "server" / "app.py"
    # In the parent it is imported, in a worker it is not.
    failing = (
        "import multiprocessing\n\n"
        "if multiprocessing.parent_process() is not None:\n"
        "    raise OSError('no licence')\n"
    )
    source.write_text(source.read_text() + failing)

    with serving(tmp_path, "my_env", "--workers", 2, "-p", 0) as child:
        code = child.wait(40.0)
        output = child.output()

    assert 1 == code, output
    assert "no licence" in output
    assert "Error: a worker could not start" in output


def test_a_unix_socket_is_listened_on_and_removed(tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    path = tmp_path / "s"

    with serving(tmp_path, "small:app", "--uds", path) as child:
        wait_until(lambda: status_by(path) == 200, 40.0)

        assert f"is served on {path}" in child.output()
        told = child.wait_for_line(r"^  (curl --unix-socket .+)$").group(1)
        assert f"curl --unix-socket {path} http://localhost/metadata" == told

    assert not path.exists()


@pytest.mark.parametrize("options", [["--workers", "2"], ["--reload"]])
def test_a_unix_socket_goes_with_workers_reload_and_a_key(tmp_path, options):
    (tmp_path / "small.py").write_text(SMALL)
    path = tmp_path / "s"

    with serving(tmp_path, "small:app", "--uds", path, *options, "--api-key", "hush"):
        wait_until(lambda: status_by(path) == 200, 40.0)

        assert 401 == status_by(path, "/schema")
        assert 200 == status_by(path, "/schema", "X-API-Key: hush\r\n")

    assert not path.exists()


def test_a_socket_that_nobody_listens_on_is_replaced(tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))

    with serving(tmp_path, "small:app", "--uds", path):
        wait_until(lambda: status_by(path) == 200, 40.0)


def test_a_place_that_is_taken_is_not_taken_away(openenv, tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "file").write_text("mine")
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(str(tmp_path / "s"))
        holder.listen()

        taken = openenv("serve", "small:app", "--uds", "s")
        wrong = openenv("serve", "small:app", "--uds", "file")
        far = openenv("serve", "small:app", "--uds", "no/such/folder/s")

        assert (tmp_path / "s").is_socket()
    assert "mine" == (tmp_path / "file").read_text()
    assert [1, 1, 1] == [taken.code, wrong.code, far.code]
    assert "cannot listen on s: somebody listens there" in taken.text
    assert "cannot listen on file: it exists and is no socket" in wrong.text
    assert "cannot listen on no/such/folder/s: No such file" in far.text


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_ctrl_c_ends_it_with_130_and_no_traceback(tmp_path, options):
    (tmp_path / "small.py").write_text(SMALL)

    with serving(tmp_path, "small:app", *options) as child:
        child.wait_for_line(r"is served on (\S+)$")
        # What is told when it listens: workers come later.
        wait_until(lambda: served(child.output(), tmp_path), 40.0)
        child.send_signal(signal.SIGINT)
        code = child.wait(20.0)
        output = child.output()

    assert 130 == code, output
    assert "Traceback" not in output
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("options", WAYS[1:3], ids=str)
def test_workers_end_when_their_parent_is_killed(tmp_path, options):
    (tmp_path / "small.py").write_text(f"{SMALL}{TELLS_ITS_END}")

    with serving(tmp_path, "small:told", *options) as child:
        url = child.wait_for_line(URL).group(1)
        wait_until(lambda: read_health(url) == "healthy", 40.0)
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: not is_open(url), 20.0)
        wait_until(lambda: "ended in order" in child.output(), 20.0)


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_terminal_that_is_closed_ends_it_in_order(tmp_path, options):
    (tmp_path / "small.py").write_text(f"{SMALL}{TELLS_ITS_END}")

    with serving(tmp_path, "small:told", *options) as child:
        child.wait_for_line(r"is served on (\S+)$")
        wait_until(lambda: served(child.output(), tmp_path), 40.0)
        child.send_signal(signal.SIGHUP)
        child.wait(20.0)
        output = child.output()

    assert "ended in order" in output
    assert "Traceback" not in output
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("options", WAYS[:2], ids=str)
def test_nohup_lets_it_go_on(tmp_path, options):
    (tmp_path / "small.py").write_text(f"{SMALL}{TELLS_ITS_END}")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with serving(tmp_path, "small:told", *options) as child:
            url = child.wait_for_line(URL).group(1)
            wait_until(lambda: read_health(url) == "healthy", 40.0)
            child.send_signal(signal.SIGHUP)
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(2.0)

            assert "ended in order" not in child.output()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("options", "code"),
    list(zip(WAYS, [-signal.SIGTERM, 0, 0, 128 + signal.SIGTERM], strict=True)),
    ids=str,
)
def test_sigterm_ends_it_with_the_documented_code(tmp_path, options, code):
    (tmp_path / "small.py").write_text(SMALL)

    with serving(tmp_path, "small:app", *options) as child:
        child.wait_for_line(r"is served on (\S+)$")
        wait_until(lambda: served(child.output(), tmp_path), 40.0)
        os.kill(child.pid, signal.SIGTERM)

        assert code == child.wait(20.0), child.output()


def test_ctrl_c_again_and_again_is_130_and_no_traceback(tmp_path):
    make_good("typed", tmp_path)

    def ends(child):
        child.send_signal(signal.SIGINT)
        return child.returncode is not None

    with serving(tmp_path, "my_env", "-p", 0) as child:
        child.wait_for_line(URL)
        wait_until(lambda: ends(child), 20.0)
        code, output = child.returncode, child.output()

    assert 130 == code, output
    assert "Traceback" not in output


def test_who_has_no_key_is_refused(tmp_path):
    make_good("typed", tmp_path)

    with serving(tmp_path, "my_env", "-p", 0, OPENENV_API_KEY="hush") as child:
        url = child.wait_for_line(URL).group(1)
        told = child.wait_for_line(r"^play it: (.+)$").group(1)
        call = child.wait_for_line(r"^call it: GenericEnvClient\((.+)\)$").group(1)

        assert f'"{url}", headers={{"Authorization": "Bearer <key>"}}' == call
        assert f"OPENENV_API_KEY='<key>' openenv rollout --base-url {url}" == told

        assert "healthy" == read_health(url)
        assert "hush" not in child.output()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}/schema")
        for headers in ({}, {"Authorization": "Bearer hus"}, {"X-API-Key": "nope"}):
            with pytest.raises(ConnectFailed, match="403"):
                play(url, headers=headers)
        for headers in ({"Authorization": "Bearer hush"}, {"X-API-Key": "hush"}):
            assert play(url, headers=headers) in {"higher", "lower"}


def test_a_server_with_a_key_is_played_by_who_has_it(openenv, tmp_path):
    make_good("typed", tmp_path)
    few, key = ("--episodes", "2"), {"OPENENV_API_KEY": "hush"}

    with serving(tmp_path, "my_env", "-p", 0, **key) as child:
        url = child.wait_for_line(URL).group(1)
        without = openenv("rollout", "--base-url", url, *few)
        with_key = openenv("rollout", "--base-url", url, *few, OPENENV_API_KEY="hush")
        option = openenv("rollout", "--base-url", url, *few, "--api-key", "hush")

    assert [1, 0, 0] == [without.code, with_key.code, option.code], with_key.text
    assert "hush" not in with_key.text + option.text


def test_changed_code_is_served_after_a_reload(tmp_path):
    folder = make_good("typed", tmp_path)
    url = f"http://127.0.0.1:{free_port()}"

    with serving(tmp_path, "my_env", "--reload", "-p", url.rpartition(":")[2]):
        wait_until(lambda: read_health(url) == "healthy", 40.0)
        path = folder / "server" / "environment.py"
        path.write_text(path.read_text().replace("TRIES = 10", "TRIES = 99"))

        def tries_left():
            try:
                with GenericEnvClient(url).sync() as client:
                    return client.reset().observation["tries_left"]
            except OSError:
                return None

        wait_until(lambda: tries_left() == 99, 40.0)


@pytest.mark.parametrize(
    "code",
    ["raise OSError('no licence')", "import sys; sys.exit(3)", "from . import none"],
)
def test_code_that_cannot_be_imported_is_shown_with_its_place(openenv, tmp_path, code):
    folder = make_good("typed", tmp_path)
    (folder / "server" / "app.py").write_text(f"{code}\n")

    done = openenv("serve", "my_env", "-p", "0")

    assert 1 == done.code, done.text
    assert "Error: importing server.app:app of my_env failed: " in done.err
    assert f"{folder}/server/app.py:1 in <module>: {code}" in done.err
    assert "openenv/cli" not in done.err


def test_changed_code_that_is_broken_is_told_and_mended(tmp_path):
    folder = make_good("typed", tmp_path)
    path = folder / "server" / "environment.py"
    good = path.read_text()

    with serving(tmp_path, "my_env", "--reload", "-p", 0) as child:
        url = child.wait_for_line(URL).group(1)
        wait_until(lambda: read_health(url) == "healthy", 40.0)
        path.write_text("raise OSError('no licence')\n")
        child.wait_for_line("no licence")
        path.write_text(good)

        wait_until(lambda: read_health(url) == "healthy", 40.0)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 2, "no environment 'nowhere'"),
        (["nowhere:app"], 2, "there is no module nowhere"),
        (["json:app"], 2, "no application 'app'"),
        (["json:dumps", "--workers", "0"], 2, "greater than or equal to 1"),
        (["json:dumps", "--api-key", " "], 2, "--api-key is empty"),
        (["json:dumps", "--web"], 2, "--web: this version has no web page yet"),
        (["json:dumps", "--workers", "2", "--reload"], 2, "--reload serves with one"),
        (["json:dumps", "--port", "70000"], 2, "less than or equal to"),
        (["json:dumps"], 2, "json:dumps is no ASGI application"),
        (["json:JSONDecoder"], 2, "json:JSONDecoder is no ASGI application"),
        (["starlette.applications:Starlette"], 2, "is no ASGI application"),
        (["json:dumps", "--uds", "s", "--port", "0"], 2, "which has no --port"),
        (["empty"], 2, "no openenv.yaml in envs/empty, empty"),
        (["small:app", "--host", "203.0.113.1"], 1, "cannot listen on 203.0.113.1"),
    ],
)
def test_a_mistake_is_one_sentence(openenv_here, tmp_path, arguments, code, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "small.py").write_text(SMALL)

    done = openenv_here("serve", *arguments)

    assert code == done.code, done.text
    assert words in done.text


@pytest.mark.parametrize("options", [[], ["--workers", "2"], ["--reload"]], ids=str)
def test_a_taken_port_is_told(openenv, tmp_path, options):
    (tmp_path / "small.py").write_text(SMALL)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        done = openenv("serve", "small:app", "--port", port, *options)

    assert 1 == done.code
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.text
    assert "is served" not in done.text
