"""Finding environments by path and by name."""

from __future__ import annotations

import sys

import pytest

from openenv.rollout.environment import find_environment, load_application
from openenv.rollout.errors import InvalidRollout

MANIFEST = "spec_version: 1\nname: my_game_env\napp: server.app:app\n"


def make_environment(folder, manifest=MANIFEST):
    folder.mkdir(parents=True)
    (folder / "openenv.yaml").write_text(manifest)
    return folder


@pytest.fixture(autouse=True)
def _work_in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["my_game_env", "my-game-env", "my_game", "my-game"])
@pytest.mark.parametrize("place", ["envs/my_game_env", "my_game_env"])
def test_bare_name_is_looked_up_below_the_current_folder(tmp_path, name, place):
    folder = make_environment(tmp_path / place)

    assert find_environment(name).folder == folder.resolve()


def test_path_is_taken_as_it_is(tmp_path):
    folder = make_environment(tmp_path / "deep" / "inside")

    for name in (str(folder), "deep/inside", "./deep/inside"):
        found = find_environment(name)
        assert (found.folder, found.name) == (folder.resolve(), "my_game_env")


def test_installed_package_is_found(tmp_path, monkeypatch):
    folder = make_environment(tmp_path / "site" / "packed_game_env")
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    assert find_environment("packed-game").folder == folder.resolve()


def test_manifest_without_app_has_upstreams_default(tmp_path):
    make_environment(tmp_path / "plain", "name: plain\n")

    assert find_environment("plain").app == "server.app:app"


def test_unknown_name_tells_where_was_looked():
    with pytest.raises(InvalidRollout, match=r"no environment 'nope'.*envs/nope, nope"):
        find_environment("nope")


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ("- a list", "must be a mapping"),
        ("name: [", "no YAML"),
        ("app: nonsense", "must be module:attribute"),
        ("app: 3", "must be module:attribute"),
    ],
)
def test_unusable_manifest_is_refused(tmp_path, manifest, complaint):
    make_environment(tmp_path / "broken", manifest)

    with pytest.raises(InvalidRollout, match=complaint):
        find_environment("broken")


@pytest.mark.parametrize("target", ["pkg.server.app:app", "app:app"])
def test_a_module_with_an_attribute_is_told_what_is_accepted(target):
    with pytest.raises(InvalidRollout) as raised:
        find_environment(target)

    text = str(raised.value)
    assert f"no environment '{target}'" in text
    assert "a folder with openenv.yaml, or the name of one" in text
    assert f"uvicorn {target}" in text


@pytest.mark.parametrize(
    ("app", "complaint"),
    [
        ("no_such_module_1:app", "there is no module no_such_module_1"),
        ("here_2.nope:app", "there is no module here_2.nope"),
        ("here_2:nope", "that module has no application 'nope'"),
        ("here_2:number", "that module has no application 'number'"),
    ],
)
def test_an_application_that_is_not_there_is_told_in_words(
    tmp_path, monkeypatch, app, complaint
):
    folder = make_environment(tmp_path / "wrong", f"app: {app}\n")
    (folder / "here_2.py").write_text("number = 3\n")
    monkeypatch.setattr("sys.path", [*sys.path])

    with pytest.raises(InvalidRollout, match=f"openenv.yaml is {app}, but {complaint}"):
        load_application(find_environment("wrong"))


def test_a_module_that_an_application_misses_is_its_own_fault(tmp_path, monkeypatch):
    folder = make_environment(tmp_path / "wrong", "app: here_3:app\n")
    (folder / "here_3.py").write_text("import no_such_module_3\n")
    monkeypatch.setattr("sys.path", [*sys.path])

    with pytest.raises(ModuleNotFoundError, match="no_such_module_3"):
        load_application(find_environment("wrong"))
