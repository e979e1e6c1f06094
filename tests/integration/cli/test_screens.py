"""What is seen on a terminal of 80 columns: no line is wider, no word is cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from tests.integration.cli.packages import make_good
from tests.integration.cli.test_manners import COMMANDS
from tests.support.processes import interruptible

WIDTH = 80
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")
# With what turns while something runs, which is another sign each time.
FRAME = re.compile("[│╭╮╰╯─┌┐└┘├┤━╺╸┏┓┡┩┃┴┬┼\u2800-\u28ff]+")


@pytest.fixture
def screen(tmp_path):
    """Run a command on a terminal; gives its exit code and the lines it wrote."""

    def run(*arguments, width=WIDTH):
        ours, theirs = pty.openpty()
        size = struct.pack("HHHH", 40, width, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        inherited = {k: v for k, v in os.environ.items() if k != "COLUMNS"}  # noqa: TID251 - handed on
        command = [sys.executable, "-m", "openenv.cli", *map(str, arguments)]
        with subprocess.Popen(
            interruptible(command),
            cwd=tmp_path,
            env={**inherited, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            written = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
        text = ESCAPES.sub("", written.decode())
        return process.returncode, re.split(r"[\r\n]+", text)

    return run


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the last process has closed its side
        return b""


def words(lines):
    return set(FRAME.sub(" ", " ".join(lines)).split())


def expect_tidy(lines, wide):
    """No line is too long, and every word is one of a wide screen, too."""
    assert max(map(len, lines)) <= WIDTH, max(lines, key=len)
    assert set() == words(lines) - words(wide)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_help_is_tidy(openenv_here, command):
    arguments = [*command.split(), "--help"]

    narrow = openenv_here(*arguments)
    wide = openenv_here(*arguments, COLUMNS="300")

    expect_tidy(narrow.out.splitlines(), wide.out.splitlines())


def _break_it(folder):
    (folder / "client.py").unlink()
    manifest = folder / "openenv.yaml"
    manifest.write_text(manifest.read_text().replace("port: 8000", "port: 7000"))


SCREENS = {
    ("init", "my_env2"): 0,
    ("init", "my-env"): 2,
    ("init", "x" * 200): 2,
    ("list",): 0,
    ("validate", "my_env", "-v", "--level", "static"): 0,
    ("validate", "broken/my_env", "-v", "--level", "static"): 1,
    ("validate", "http://127.0.0.1:9"): 1,
    ("serve", "nowhere"): 2,
    ("serve", "my_env", "--host", "203.0.113.1"): 1,
    ("rollout", "my_env", "-m", "3", "--seed", "1"): 0,
    ("rollout", "my_env", "--policy", "nope:act"): 2,
    ("build", "my_env", "--build-arg", "A"): 2,
    ("push", "broken/my_env"): 2,
    ("fork", "game"): 2,
    ("stop",): 2,
    ("nope",): 2,
    ("init",): 2,
}


@pytest.mark.parametrize("command", SCREENS, ids=lambda each: " ".join(each)[:40])
def test_what_a_command_shows_is_tidy(screen, tmp_path, command):
    make_good("typed", tmp_path)
    (tmp_path / "broken").mkdir()
    _break_it(make_good("typed", tmp_path / "broken"))

    code, lines = screen(*command)

    assert SCREENS[command] == code, lines
    assert max(map(len, lines)) <= WIDTH, max(lines, key=len)
    assert "Traceback" not in "".join(lines)
    if command[0] not in ("init", "rollout"):  # their words differ from run to run
        _, wide = screen(*command, width=300)
        expect_tidy(lines, wide)


def test_what_serve_tells_is_tidy(screen, tmp_path):
    folder = make_good("typed", tmp_path)
    source = folder / "server" / "app.py"
    stop = (
        "\nimport os, signal, threading\n"
        "threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
    )
    source.write_text(source.read_text() + stop)

    code, lines = screen("serve", "my_env", "--port", "0")

    assert 130 == code, lines
    assert max(map(len, lines)) <= WIDTH, max(lines, key=len)
    assert "openenv validate --url http://127.0.0.1:" in " ".join(lines)
