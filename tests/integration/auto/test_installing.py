"""A Space's package is installed for the interpreter that asks, by uv and from git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
from tests.integration.auto.conftest import UV
from tests.support.processes import ROOT

SPACE = "https://huggingface.co/spaces/me/my_env"
FILES = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\n'
    'build-backend = "setuptools.build_meta"\n'
    '[project]\nname = "openenv-my-env"\nversion = "0.3"\n'
    '[tool.setuptools]\npackages = ["my_env"]\n'
    '[tool.setuptools.package-data]\nmy_env = ["openenv.yaml"]\n',
    "my_env/__init__.py": "",
    "my_env/openenv.yaml": "name: my_env\n",
    "my_env/client.py": "from openenv.core.generic_client import GenericEnvClient\n"
    "class MyEnv(GenericEnvClient): pass\nclass MyAction(dict): pass\n",
}


@pytest.fixture
def python(tmp_path):
    """The interpreter of a throwaway environment that sees what this one has."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    places = [str(ROOT / "python"), sysconfig.get_path("purelib")]
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    folder = Path(subprocess.check_output(command, text=True).strip())
    (folder / "seen.pth").write_text("\n".join(places))
    return python


@pytest.fixture
def variables(tmp_path):
    """Environment variables by which git has the Space here, and uv stays offline."""
    repository = tmp_path / "repository"
    for name, text in FILES.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], cwd=repository, check=True)
    return {
        **os.environ,  # noqa: TID251 - handed on
        "PATH": f"{UV.parent}{os.pathsep}{os.environ['PATH']}",  # noqa: TID251
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{repository}.insteadOf",
        "GIT_CONFIG_VALUE_0": SPACE,
        "UV_NO_BUILD_ISOLATION": "1",
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }


def _run(python, code, variables):
    return subprocess.run(
        [python, "-c", f"from openenv import AutoAction, AutoEnv\n{code}"],
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_a_trusted_space_is_installed_once_and_found_from_then_on(python, variables):
    code = "print(AutoAction.from_hub('me/my_env').__module__)"
    trusting = {**variables, "OPENENV_TRUST_REMOTE_CODE": "1"}
    asked = _run(python, code, variables)
    first = _run(python, code, trusting)
    without_git = {**variables, "GIT_CONFIG_COUNT": "0"}
    second = _run(python, code, without_git)
    named = _run(python, "AutoEnv.list_environments()", without_git)

    assert "there is no terminal to ask" in asked.stderr
    assert "my_env.client\n" == first.stdout, first.stderr
    assert "my_env.client\n" == second.stdout, second.stderr
    assert "my  0.3" in named.stdout.splitlines()


def test_what_the_installer_says_is_told(python, variables):
    code = "AutoEnv.from_env('me/my_env', trust_remote_code=True)"
    done = _run(python, code, {**variables, "GIT_CONFIG_COUNT": "0"})

    assert f"ValueError: Failed to install git+{SPACE} (exit code" in done.stderr
    assert 1 == done.returncode


def test_an_editable_installation_is_found(python, variables, tmp_path):
    sources = tmp_path / "grid_world_env"
    shutil.copytree(ROOT / "envs" / "grid_world_env", sources)
    command = [UV, "pip", "install", "--python", python, "--no-deps", "-e", sources]
    subprocess.run(command, env=variables, check=True, timeout=100)
    code = "AutoEnv.list_environments(); print(AutoAction.from_env('grid-world'))"
    done = _run(python, code, variables)

    assert "grid_world  0.1.0  " in done.stdout, done.stderr
    assert "<class 'grid_world_env.models.GridWorldAction'>" in done.stdout
