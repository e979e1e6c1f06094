"""Which of the two is used, and that both have the same names and signatures."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from openenv import _rust
from openenv.core import _baseline

SOCKETS = {"Hub", "Transport"}  # Rust's alone, on Linux

CHOSEN = """
import sys
sys.modules |= dict.fromkeys({missing!r})
from openenv import GenericEnvClient
from openenv.core._native import native
print(native.__name__, "openenv.core._baseline" in sys.modules)
"""


@pytest.fixture
def python(monkeypatch):
    """Run a client's import without some modules; give what it printed."""

    def run(*missing, pure=""):
        monkeypatch.setenv("OPENENV_PURE_PYTHON", pure)
        command = [sys.executable, "-c", CHOSEN.format(missing=missing)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("pure", ["", "0"])
def test_rust_is_used_where_it_can_be_and_nothing_else_is_loaded(python, pure):
    assert "openenv._rust False\n" == python("websockets", pure=pure).stdout


def test_plain_python_is_used_where_it_is_asked_for(python):
    assert "openenv.core._baseline True\n" == python(pure="1").stdout


def test_plain_python_is_used_where_rust_cannot_be_loaded(python):
    assert "openenv.core._baseline True\n" == python("openenv._rust").stdout


def test_without_either_the_error_says_why_and_what_to_install(python):
    switched_off = python("websockets", pure="1").stderr
    not_there = python("websockets", "openenv._rust").stderr

    assert "_rust was switched off by OPENENV_PURE_PYTHON=1, and" in switched_off
    assert "_rust cannot be loaded (" in not_there
    for told in (switched_off, not_there):
        assert "needs websockets: pip install 'openenv[pure]'\n" in told


def public(holder):
    return {name for name in vars(holder) if not name.startswith("_")}


def parameters(callee):
    """Give what a call may look like: names, kinds and defaults."""
    found = dict(inspect.signature(callee).parameters)
    found.pop("self", None)
    return [(each.name, each.kind, each.default) for each in found.values()]


def test_both_have_the_same_names():
    modules = {name for name in public(_rust) if name not in SOCKETS}

    assert modules == set(_baseline.__all__)


@pytest.mark.parametrize(
    "name", [name for name in _baseline.__all__ if name[0].islower()]
)
def test_functions_have_the_same_signature(name):
    expected = parameters(getattr(_rust, name))

    assert expected == parameters(getattr(_baseline, name))


@pytest.mark.parametrize("name", ["ClientEndpoint", "Decoder", "Irregular", "Request"])
def test_classes_have_the_same_members(name):
    rust, plain = getattr(_rust, name), getattr(_baseline, name)
    missing = public(rust) - public(plain)

    assert set() == missing
    for member in public(rust):
        if callable(getattr(rust, member)):
            expected = parameters(getattr(rust, member))
            assert expected == parameters(getattr(plain, member))
