"""The script `server` of our environments: its options, and `main` from Python."""

from __future__ import annotations

import runpy
import sys
from importlib import import_module

import pytest

ENVIRONMENTS = ["grid_world_env", "echo_env"]
of_each = pytest.mark.parametrize("name", ENVIRONMENTS)


@pytest.fixture
def served(monkeypatch):
    """Where an environment's server was asked to listen; nothing listens."""
    calls = []

    def record(app, host, port):
        del app
        calls.append((host, port))

    monkeypatch.setattr("openenv.core.env_server.serve", record)
    for name in ENVIRONMENTS:
        monkeypatch.setattr(import_module(f"{name}.server.app"), "serve", record)
    return calls


@of_each
@pytest.mark.parametrize(
    ("options", "place"),
    [
        ([], ("127.0.0.1", 8000)),
        (["--port", "9001"], ("127.0.0.1", 9001)),
        (["--host", "0.0.0.0", "--port", "0"], ("0.0.0.0", 0)),
    ],
)
def test_the_scripts_options_are_heeded(monkeypatch, served, name, options, place):
    monkeypatch.setattr(sys, "argv", ["server", *options])

    import_module(f"{name}.server.app").main()

    assert [place] == served


@of_each
def test_the_module_is_the_same_program(monkeypatch, served, name):
    monkeypatch.setattr(sys, "argv", ["app.py", "--port", "9002"])
    monkeypatch.delitem(sys.modules, f"{name}.server.app")

    runpy.run_module(f"{name}.server.app", run_name="__main__")

    assert [("127.0.0.1", 9002)] == served


@of_each
def test_arguments_from_python_leave_the_command_line_alone(monkeypatch, served, name):
    monkeypatch.setattr(sys, "argv", ["pytest", "--no-such-option"])
    main = import_module(f"{name}.server.app").main

    main("0.0.0.0", 9003)
    main(port=9004)

    assert [("0.0.0.0", 9003), ("127.0.0.1", 9004)] == served


@of_each
def test_an_unknown_option_is_code_2(monkeypatch, served, name):
    monkeypatch.setattr(sys, "argv", ["server", "--prot", "1"])

    with pytest.raises(SystemExit, match="2"):
        import_module(f"{name}.server.app").main()

    assert [] == served
