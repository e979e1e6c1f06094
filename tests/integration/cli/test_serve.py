"""`openenv serve` from the outside: every way to name and to listen."""

from __future__ import annotations

import json
import socket
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from tests.integration.cli.packages import make_good
from tests.support.processes import ROOT, ChildProcess, wait_until

from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ConnectFailed

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


@pytest.mark.parametrize("target", [".", "my_env", "my_env.server.app:app"])
def test_a_folder_a_name_and_a_module_are_served(tmp_path, target):
    folder = make_good("typed", tmp_path)

    with serving(folder if target == "." else tmp_path, target, "-p", 0) as child:
        url = child.wait_for_line(URL).group(1)

        assert play(url) in {"higher", "lower"}
        assert f'call it: GenericEnvClient("{url}")' in child.output()


def test_several_workers_each_hold_sessions(tmp_path):
    make_good("typed", tmp_path)
    url = f"http://127.0.0.1:{free_port()}"

    arguments = ("my_env", "--workers", 2, "-p", url.rpartition(":")[2])
    with serving(tmp_path, *arguments) as child:
        wait_until(lambda: read_health(url) == "healthy", 40.0)

        assert {"higher", "lower"} >= {play(url) for _ in range(4)}
        assert "Traceback" not in child.output()


def test_a_unix_socket_is_listened_on(tmp_path):
    make_good("typed", tmp_path)

    with serving(tmp_path, "my_env", "--uds", tmp_path / "s"):
        wait_until((tmp_path / "s").exists, 40.0)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(tmp_path / "s"))
            peer.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")

            assert peer.recv(1024).startswith(b"HTTP/1.1 200")


def test_who_has_no_key_is_refused(tmp_path):
    make_good("typed", tmp_path)

    with serving(tmp_path, "my_env", "-p", 0, OPENENV_API_KEY="hush") as child:
        url = child.wait_for_line(URL).group(1)

        assert "healthy" == read_health(url)
        assert "hush" not in child.output()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}/schema")
        for headers in ({}, {"Authorization": "Bearer hus"}, {"X-API-Key": "nope"}):
            with pytest.raises(ConnectFailed, match="403"):
                play(url, headers=headers)
        for headers in ({"Authorization": "Bearer hush"}, {"X-API-Key": "hush"}):
            assert play(url, headers=headers) in {"higher", "lower"}


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
    ("arguments", "code", "words"),
    [
        (["nowhere"], 2, "no environment 'nowhere'"),
        (["nowhere:app"], 2, "there is no module nowhere"),
        (["json:app"], 2, "no application 'app'"),
        (["json:dumps", "--workers", "0"], 2, "greater than or equal to 1"),
        (["json:dumps", "--workers", "2", "--reload"], 2, "--reload serves with one"),
        (["json:dumps", "--port", "70000"], 2, "less than or equal to"),
        (["json:dumps", "--host", "203.0.113.1"], 1, "cannot listen on 203.0.113.1"),
    ],
)
def test_a_mistake_is_one_sentence(openenv, arguments, code, words):
    done = openenv("serve", *arguments)

    assert code == done.code, done.text
    assert words in done.text


def test_a_taken_port_is_told(openenv, tmp_path):
    make_good("typed", tmp_path)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        done = openenv("serve", "my_env", "--port", port)

    assert 1 == done.code
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.text
