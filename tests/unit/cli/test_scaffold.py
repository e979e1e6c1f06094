"""What `openenv init` writes: names, whole trees, nothing by halves."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
import yaml

from openenv.cli import _scaffold
from openenv.cli._console import WrongUse
from openenv.cli._scaffold import Template, check_name, class_prefix, create_package
from openenv.cli.manifest import read_manifest

FILES = {
    ".dockerignore",
    ".gitignore",
    "README.md",
    "__init__.py",
    "client.py",
    "models.py",
    "openenv.yaml",
    "py.typed",
    "pyproject.toml",
    "server/Dockerfile",
    "server/__init__.py",
    "server/app.py",
    "server/environment.py",
    "tests/test_environment.py",
}


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("my_game_env", "MyGame"),
        ("test_env", "Test"),
        ("mygame", "Mygame"),
        ("env_of_envs", "EnvOfEnvs"),
        ("_env", "Env"),
        ("HTTPEnv", "HTTPEnv"),
    ],
)
def test_classes_are_called_as_upstream_calls_them(name: str, prefix: str):
    assert prefix == class_prefix(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "cannot be empty"),
        ("my-env", "try my_env"),
        ("1st", "not a valid Python identifier"),
        ("Übung", "ASCII.*; try bung"),
        ("../up", "try up"),
        ("class", "not a valid Python identifier"),
        ("json", "try json_env"),
        ("pydantic", "try pydantic_env"),
        ("CON", "a device on Windows; try CON_env"),
        ("lpt1", "a device on Windows"),
        ("_env", "no _ first"),
        ("__init__", "no _ first"),
        ("x" * 97, "at most 96 characters, not 97"),
        ("openenv", "the name of another package"),
        ("server", "the name of another package"),
    ],
)
def test_what_cannot_be_a_package_is_refused(name: str, words: str):
    with pytest.raises(WrongUse, match=words):
        check_name(name)


@pytest.mark.parametrize("template", Template)
@pytest.mark.parametrize("name", ["my_env", "a__b", "X1"])
def test_every_file_of_every_template_is_whole(tmp_path, template, name):
    written = create_package(name, tmp_path, template)

    folder = tmp_path / name
    found = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}
    assert set(written) == found == {Path(file) for file in FILES}
    for path in found:
        text = (folder / path).read_text(encoding="utf-8")
        assert "\r" not in text
        assert _scaffold._PLACEHOLDER.search(text) is None
        if path.suffix == ".py":
            ast.parse(text)
    assert () == read_manifest(folder / "openenv.yaml").problems
    assert name == tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))[
        "project"
    ]["scripts"]["server"].removesuffix(".server.app:main")


@pytest.mark.parametrize(
    ("template", "needed"),
    [
        (Template.TYPED, "openenv[core]"),
        (Template.MSGSPEC, "openenv[core]"),
        (Template.MCP, "openenv[core,mcp]"),
    ],
)
def test_the_package_and_its_image_need_the_same_extras(tmp_path, template, needed):
    create_package("my_env", tmp_path, template)
    folder = tmp_path / "my_env"

    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    image = (folder / "server" / "Dockerfile").read_text("utf-8")
    assert [f"{needed}>=0.11"] == project["dependencies"]
    assert f'"{needed} @ file://' in image


def test_the_manifest_and_the_front_matter_are_good(tmp_path):
    create_package("my_env", tmp_path, Template.TYPED)
    folder = tmp_path / "my_env"

    assert () == read_manifest(folder / "openenv.yaml").problems
    _, front, page = (
        (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    )
    matter = yaml.safe_load(front)
    assert ("docker", 8000, ["openenv"]) == (
        matter["sdk"],
        matter["app_port"],
        matter["tags"],
    )
    assert matter["colorFrom"] in _scaffold._COLORS
    assert page.lstrip().startswith("# My Env")


def test_an_empty_folder_may_be_there(tmp_path):
    (tmp_path / "my_env").mkdir()

    create_package("my_env", tmp_path, Template.TYPED)

    assert (tmp_path / "my_env" / "client.py").is_file()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "my_env").mkdir()
    (tmp_path / "my_env" / "mine").write_text("mine")
    (tmp_path / "my_file").write_text("mine")

    with pytest.raises(WrongUse, match="not empty"):
        create_package("my_env", tmp_path, Template.TYPED)
    with pytest.raises(WrongUse, match="is a file"):
        create_package("my_file", tmp_path, Template.TYPED)

    assert ["mine"] == [path.name for path in (tmp_path / "my_env").iterdir()]
    assert {"my_env", "my_file"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, error):
    write_text, written = Path.write_text, []

    def fail_late(path, *arguments, **options):
        written.append(path)
        if len(written) == 5:
            raise error
        return write_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fail_late)

    with pytest.raises(type(error)):
        create_package("my_env", tmp_path, Template.TYPED)

    assert 5 == len(written)
    assert [] == list(tmp_path.iterdir())
