"""The wheel alone: what it needs, what it loads, and what it says is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest
from tests.images.build import distributions
from tests.support.golden_servers import GoldenServers
from tests.support.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.timeout(900)  # a wheel may have to be built first

VERSION = "0.11.0"
LIGHT_MODULES = (
    "openenv",
    "openenv.auto.auto_env",
    "openenv.core",
    "openenv.core.env_client",
    "openenv.core.env_server.types",
    "openenv.errors",
)
FRAMEWORKS = (
    "fastapi",
    "fastmcp",
    "gradio",
    "httpx",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
    "websockets",
)
LOADED = (
    "import json, sys, importlib; importlib.import_module({module!r}); "
    "print(json.dumps(sorted({frameworks!r} & sys.modules.keys())))"
)
EPISODE = """
from openenv import GenericEnvClient
with GenericEnvClient(base_url="http://127.0.0.1:{port}").sync() as client:
    client.reset(seed=3)
    print(client.step({{"message": "hi"}}).observation["echoed"])
"""


def test_the_wheel_needs_four_packages_and_what_they_need(
    in_base: Callable[[str], str],
):
    code = (
        "import importlib.metadata, json; "
        "print(json.dumps([d.name for d in importlib.metadata.distributions()]))"
    )
    names = {name.lower().replace("_", "-") for name in json.loads(in_base(code))}
    installed = names - {"pip", "setuptools"}

    expected = {
        "annotated-types",
        "msgspec",
        "openenv",
        "pydantic",
        "pydantic-core",
        "typing-extensions",
        "typing-inspection",
        "uvloop",
    }
    assert expected == installed


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_a_light_module_imports_in_the_base_environment(
    module: str, in_base: Callable[[str], str]
):
    code = LOADED.format(module=module, frameworks=set(FRAMEWORKS))

    assert json.loads(in_base(code)) == []


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_a_light_module_loads_no_framework_where_all_are_installed(module: str):
    code = LOADED.format(module=module, frameworks=set(FRAMEWORKS))
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)

    assert json.loads(loaded) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from openenv.core.env_server import create_app",
        "from openenv.core.env_server import HTTPEnvServer",
        "from openenv.core.env_server.http_server import create_app",
        "from openenv.core import create_app",
        "from openenv.core.env_server import serve",
    ],
)
def test_a_server_name_without_its_extra_names_the_extra(
    statement: str, in_base: Callable[[str], str]
):
    code = (
        f"try:\n    {statement}\nexcept ModuleNotFoundError as error:\n    print(error)"
    )

    assert "openenv[core]" in in_base(code)


def test_the_command_without_its_extra_names_the_extra(base_python: Path):
    command = [base_python.parent / "openenv", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "openenv[cli]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_told_by_the_package_and_its_metadata(
    in_base: Callable[[str], str],
):
    code = (
        "import importlib.metadata, openenv; "
        "print(openenv.__version__, importlib.metadata.version('openenv'))"
    )

    assert f"{VERSION} {VERSION}" == in_base(code)


def test_the_legacy_name_warns_and_gives_the_same_modules(
    in_base: Callable[[str], str],
):
    code = (
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
        "import openenv_core.env_server.types as old\n"
        "import openenv.core.env_server.types as new\n"
        "print(old is new)"
    )

    assert in_base(code) == "True"


def test_an_episode_runs_with_the_base_packages_alone(in_base: Callable[[str], str]):
    with GoldenServers(sys.executable) as servers:
        port = servers.port("async4")

        assert in_base(EPISODE.format(port=port)) == "hi"


def test_the_server_brings_no_model_client_and_no_web_interface():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = pyproject["dependencies"] + pyproject["optional-dependencies"]["core"]
    names = [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed]
    found = distributions(names)

    assert "fastapi" in found
    assert set() == found & {"fastmcp", "gradio", "openai"}


def test_the_wheel_holds_types_stub_and_the_legacy_name(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    assert {
        "openenv/__init__.py",
        "openenv/_rust.pyi",
        "openenv/py.typed",
        "openenv_core/__init__.py",
    } <= names
    (extension,) = [name for name in names if name.endswith((".so", ".pyd"))]
    assert extension.startswith("openenv/_rust.")
    tops = {name.split("/")[0] for name in names}
    assert {"openenv", "openenv_core", f"openenv-{VERSION}.dist-info"} == tops
