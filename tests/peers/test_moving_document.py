"""What `docs/moving.md` calls missing is what upstream has and this package has not."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from tests.support.processes import ROOT

DOCUMENT = ROOT / "docs" / "moving.md"
NAMES = """
import importlib, json, pkgutil, sys
names, modules = set(), set()
for package in ("openenv", "openenv.core", "openenv.core.env_server"):
    module = importlib.import_module(package)
    names |= set(module.__all__)
    modules |= {f"{package}.{m.name}" for m in pkgutil.iter_modules(module.__path__)}
json.dump([sorted(names), sorted(modules)], sys.stdout)
"""
# Parts of the web page and helpers, which nobody imports by themselves.
INNER = {"gradio_theme", "gradio_ui", "_utils"}


def _names(python: str) -> tuple[set[str], set[str]]:
    done = subprocess.run(
        [python, "-W", "ignore", "-c", NAMES],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    names, modules = json.loads(done.stdout)
    return set(names), {m for m in modules if m.rpartition(".")[2] not in INNER}


@pytest.fixture(scope="module")
def missing(upstream_python):
    theirs, ours = _names(upstream_python), _names(sys.executable)
    return theirs[0] - ours[0], theirs[1] - ours[1]


def test_each_missing_name_and_module_is_in_the_document(missing):
    section = DOCUMENT.read_text().partition("## Installing")[0]
    told = set(re.findall(r"`([\w.]+)`", section.partition("| missing |")[2]))
    modules = {name for name in told if name.startswith("openenv.")}
    names = {name for name in told - modules if name[0].isupper() or "_" in name}

    assert missing[1] == modules
    assert missing[0] == names - {"ENABLE_WEB_INTERFACE"}
