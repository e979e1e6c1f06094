"""An environment in its own project, by the real uv, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from tests.support.processes import wait_until

from openenv.core.containers.runtime import UVProvider
from openenv.core.containers.runtime._git_clone import Clone, Source, source_of
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import ProviderError

PYPROJECT = """\
[project]
name = "their-env"
version = "1"
requires-python = ">=3.11"
dependencies = []
"""
APP = "from grid_world_env.server.app import app\n"


@pytest.fixture(autouse=True)
def uv_from_here(monkeypatch):
    # The interpreter's folder has uv; what the project needs lies on this one's path.
    monkeypatch.setenv(
        "PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.getenv('PATH')}"
    )


@pytest.fixture
def variables():
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "UV_OFFLINE": "1",
        "UV_PYTHON": sys.executable,
    }


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "server").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "server/__init__.py").touch()
    (folder / "server/app.py").write_text(APP)
    return folder


@pytest.fixture
def repository(project):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(project)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "first"], check=True)
    return f"git+file://{project}"


@pytest.fixture
def history(tmp_path):
    """Make a repository whose project is in a folder, of a commit that went on."""
    root = tmp_path / "history"
    folder = root / "envs/theirs"
    (folder / "server").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "server/__init__.py").touch()
    (folder / "server/app.py").write_text(APP)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(root)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "first"], check=True)
    subprocess.run([*git, "branch", "feature/good"], check=True)
    subprocess.run([*git, "tag", "v1"], check=True)
    told = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True)
    subprocess.run([*git, "rm", "--quiet", "-r", "envs"], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "second"], check=True)
    return f"git+file://{root}", told.strip()


def clones():
    return set(Path(tempfile.gettempdir()).glob("openenv-uv-clone-*"))


def test_a_folder(project, variables, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    provider = UVProvider(project_path=str(project), env_vars=variables)
    with GenericEnvClient(provider=provider).sync() as env:
        assert not env.reset(seed=1).done
        assert env.base_url.startswith("http://127.0.0.1:")


def test_a_repository_is_cloned_and_the_clone_removed(repository, variables):
    before = clones()
    handle = GenericEnvClient.from_env(
        "org/unused",
        use_docker=False,
        project_path=repository,
        env_vars=variables,
    )
    with handle as env:
        assert not env.reset(seed=1).done
        assert 1 == len(clones() - before)

    assert before == clones()


def fetched(url):
    clone = Clone()
    try:
        folder = clone.fetch(source_of(url), time.monotonic() + 10, threading.Event())
        return sorted(each.name for each in Path(folder).iterdir())
    finally:
        clone.remove()


@pytest.mark.parametrize("revision", ["feature/good", "v1", "commit"])
def test_a_revision_and_a_folder(history, revision):
    before = clones()
    url, commit = history
    revision = commit if revision == "commit" else revision

    assert ["pyproject.toml", "server"] == fetched(
        f"{url}@{revision}#subdirectory=envs/theirs"
    )
    assert before == clones()


@pytest.mark.parametrize(
    ("ending", "complaint"),
    [
        ("@v2", r"Failed to checkout v2 \(exit code \d+\)"),
        ("@v1#subdirectory=envs/mine", "has no folder 'envs/mine'"),
        ("#subdirectory=envs/theirs", "has no folder 'envs/theirs'"),
    ],
)
def test_a_revision_or_a_folder_that_is_not_there(history, ending, complaint):
    before = clones()
    with pytest.raises(ProviderError, match=complaint):
        UVProvider(project_path=history[0] + ending).start()

    assert before == clones()


def test_a_project_in_a_folder_of_a_revision_is_run(history, variables):
    url = f"{history[0]}@v1#subdirectory=envs/theirs"
    provider = UVProvider(project_path=url, env_vars=variables)
    with GenericEnvClient(provider=provider).sync() as env:
        assert not env.reset(seed=1).done


@pytest.mark.parametrize(
    ("rest", "source"),
    [
        ("https://h/o/r", Source(url="https://h/o/r")),
        ("https://h/o/r.git@v1", Source(url="https://h/o/r.git", revision="v1")),
        ("https://me:pw@h/o/r", Source(url="https://me:pw@h/o/r")),
        ("ssh://git@h/r@a/b", Source(url="ssh://git@h/r", revision="a/b")),
        ("git@h:o/r.git", Source(url="git@h:o/r.git")),
        ("https://h/r#egg=x&subdirectory=a/b", Source(url="https://h/r", folder="a/b")),
    ],
)
def test_the_parts_of_a_url(rest, source):
    assert source == source_of(f"git+{rest}")


@pytest.mark.parametrize(
    "rest",
    [
        "https://h/r@",
        "https://h/r@--x",
        "h/r#subdirectory=a/../..",
        "h/r#subdirectory=/a",
    ],
)
def test_a_url_that_cannot_be(rest):
    with pytest.raises(ValueError, match=r"is no revision|leaves the repository"):
        UVProvider(project_path=f"git+{rest}")


def test_a_clone_goes_with_its_owner(repository, variables):
    code = (
        "import sys\n"
        "from openenv.core.containers.runtime import UVProvider\n"
        "provider = UVProvider(project_path=sys.argv[1])\n"
        "provider.start(env_vars={**dict(v.split('=', 1) for v in sys.argv[2:])})\n"
        "print(provider._clone.path, flush=True)\n"
        "sys.stdin.read()\n"
    )
    given = [f"{name}={value}" for name, value in variables.items()]
    owner = subprocess.Popen(
        [sys.executable, "-c", code, repository, *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    path = Path(owner.stdout.readline().strip())
    assert (path / "pyproject.toml").exists()
    owner.kill()
    owner.communicate()

    wait_until(lambda: not path.exists(), 10)


def test_a_url_stays_as_it_is():
    url = "git+https://huggingface.co/spaces/org/name"

    assert url == UVProvider(project_path=url).project_path


def test_a_repository_that_is_not_there(tmp_path):
    before = clones()
    provider = UVProvider(project_path=f"git+file://{tmp_path}/nothing")
    with pytest.raises(ProviderError, match=r"Failed to clone.*exit code 128"):
        provider.start()

    assert before == clones()


def test_a_remote_that_hangs_is_given_up(monkeypatch, tmp_path):
    before = clones()
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nsleep 600\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.getenv('PATH')}")
    provider = UVProvider(project_path="git+https://h/x", context_timeout_s=0.5)
    with pytest.raises(TimeoutError, match="git clone https://h/x did not end in time"):
        provider.start()

    assert before == clones()


def test_an_application_that_cannot_be_imported(project, variables):
    (project / "server/app.py").write_text("raise RuntimeError('no assets')\n")
    provider = UVProvider(project_path=str(project), env_vars=variables)
    with pytest.raises(
        ProviderError, match=r"(?s)ended early \(exit code 1\).*no assets"
    ):
        provider.start()


@pytest.mark.parametrize("name", ["uv", "git"])
def test_a_program_that_is_missing_is_named(monkeypatch, tmp_path, name):
    for other in {"uv", "git"} - {name}:
        (tmp_path / other).write_text("")
        (tmp_path / other).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProviderError, match=f"`{name}` executable not found"):
        UVProvider(project_path="git+https://h/x").start()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_server_of_the_environments_own_is_not_taken_for_it(project, variables, host):
    own = "print('Uvicorn running on http://127.0.0.1:1', flush=True)\n"
    app = project / "server/app.py"
    app.write_text(own + app.read_text())
    provider = UVProvider(project_path=str(project), host=host, env_vars=variables)
    with GenericEnvClient(provider=provider).sync() as env:
        assert not env.reset(seed=1).done
        assert not env.base_url.endswith(":1")
