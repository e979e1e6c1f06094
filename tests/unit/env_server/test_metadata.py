"""What is known about an environment without running it."""

from __future__ import annotations

from functools import partial

import pytest

from openenv.core.env_server import Environment
from openenv.core.env_server.types import EnvironmentMetadata, State
from openenv.core.env_server.web_interface import load_environment_metadata


class Plain(Environment):
    """Describe itself as every environment does."""

    def reset(self, seed=None, episode_id=None, **kwargs):
        raise NotImplementedError

    def step(self, action, timeout_s=None, **kwargs):
        raise NotImplementedError

    @property
    def state(self):
        return State()


class Telling(Plain):
    def get_metadata(self):
        return EnvironmentMetadata(name="told", description="d", version="7")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ENV_README_PATH", raising=False)
    return tmp_path


def make():
    raise AssertionError("not called")


@pytest.mark.parametrize(
    ("env", "name"),
    [(Plain, "Plain"), (make, "make"), (partial(partial(make), 1), "make")],
)
def test_a_class_or_factory_is_described_by_its_name_and_not_called(env, name):
    metadata = load_environment_metadata(env)

    assert (name, f"{name} environment", "1.0.0", None) == (
        metadata.name,
        metadata.description,
        metadata.version,
        metadata.readme_content,
    )
    assert "my_env" == load_environment_metadata(env, "my_env").name


def test_an_instance_describes_itself():
    assert ("told", "7") == (
        load_environment_metadata(Telling()).name,
        load_environment_metadata(Telling(), "other").version,
    )


def test_the_readme_is_found_where_it_lies(folder, monkeypatch):
    beside = folder / "envs" / "my_env" / "README.md"
    beside.parent.mkdir(parents=True)
    beside.write_text("# beside ü", encoding="utf-8")
    asked = folder / "asked.md"

    assert "# beside ü" == load_environment_metadata(Plain, "my_env").readme_content
    monkeypatch.setenv("ENV_README_PATH", str(asked))
    assert "# beside ü" == load_environment_metadata(Plain, "my_env").readme_content
    asked.write_text("# asked")
    assert "# asked" == load_environment_metadata(Plain, "my_env").readme_content
    assert "# asked" == load_environment_metadata(Telling()).readme_content


def test_a_readme_that_cannot_be_read_is_warned_of(folder, monkeypatch, caplog):
    bad = folder / "bad.md"
    bad.write_bytes(b"\xff\xfe\xff")
    monkeypatch.setenv("ENV_README_PATH", str(bad))

    assert None is load_environment_metadata(Plain).readme_content
    assert "bad.md cannot be read" in caplog.text
