"""What ends the wait for a server: its answers, the time, an interruption."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time

import pytest

from openenv.core.containers.runtime._readiness import wait_until_ready
from openenv.errors import ProviderError

HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@contextlib.contextmanager
def serving(answer, host="127.0.0.1"):
    """Serve connections with ``answer(connection, request)``, a thread each."""
    ended = threading.Event()
    threads = []

    def serve(connection):
        with connection, contextlib.suppress(OSError):
            request = connection.recv(65536)
            answer(connection, request, ended)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=serve, args=(connection,)))
                threads[-1].start()

    with socket.create_server((host, 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        yield f"http://{host}:{listener.getsockname()[1]}"
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
    for thread in (accepting, *threads):
        thread.join(10)


def hanging_websocket(connection, request, ended):
    if b"/health" in request:
        connection.sendall(HEALTHY)
    else:
        ended.wait(20)


def dripping(connection, _request, ended):
    connection.sendall(b"HTTP/1.1 2")
    while not ended.wait(0.1):
        connection.sendall(b"0")


def silent(_connection, _request, ended):
    ended.wait(20)


def never():
    pass


def took_s(function, *arguments):
    started_at = time.monotonic()
    function(*arguments)
    return time.monotonic() - started_at


@pytest.mark.parametrize("answer", [silent, dripping, hanging_websocket])
def test_an_interruption_cuts_a_question_short(answer):
    interrupted = threading.Event()

    def wait():
        timer.start()
        with pytest.raises(ProviderError, match="was interrupted"):
            wait_until_ready(url, 30, never, interrupted)

    timer = threading.Timer(0.5, interrupted.set)
    with serving(answer) as url:
        assert took_s(wait) < 1.5


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (silent, "/health did not answer"),
        (dripping, "/health did not answer"),
        (hanging_websocket, "/ws did not open"),
    ],
)
def test_no_answer_outlives_the_deadline(answer, complaint):
    def wait():
        with pytest.raises(TimeoutError, match=complaint):
            wait_until_ready(url, 0.5, never, threading.Event())

    with serving(answer) as url:
        assert took_s(wait) < 1.5


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"HTTP/1.1 503 Busy\r\n\r\n", "/health answered 503"),
        (b"SSH-2.0-OpenSSH_9\r\n", "/health answered no HTTP"),
        (b"", "/health did not answer: connection closed"),
        (b"x" * 100_000, "/health answered no HTTP"),
    ],
)
def test_another_answer_is_told(answer, complaint):
    def say(connection, _request, _ended):
        connection.sendall(answer)

    with serving(say) as url, pytest.raises(TimeoutError, match=complaint):
        wait_until_ready(url, 0.2, never, threading.Event())


@pytest.mark.parametrize("timeout_s", [None, "5", math.nan, -1])
def test_a_timeout_that_is_none_is_refused(timeout_s):
    with pytest.raises((TypeError, ValueError), match="timeout_s must be"):
        wait_until_ready("http://127.0.0.1:9", timeout_s, never, threading.Event())


def test_no_provider_asks_through_a_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with (
        serving(hanging_websocket, _own_address()) as url,
        # It got beyond /health, and no connection was refused.
        pytest.raises(TimeoutError, match=r"/ws did not open: .*within"),
    ):
        wait_until_ready(url, 0.2, never, threading.Event())


def _own_address():
    # Not a loopback one where there is another: for those no client takes a proxy.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


async def test_it_can_be_waited_for_inside_a_running_loop():
    with (
        serving(hanging_websocket) as url,
        pytest.raises(TimeoutError, match="/ws did not open"),
    ):
        wait_until_ready(url, 0.1, never, threading.Event())
