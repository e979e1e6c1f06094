"""Finding environments by path and by name."""

from __future__ import annotations

import pytest

from openenv.rollout.environment import find_environment
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
        ("name: [", "cannot read"),
        ("app: nonsense", "must be module:attribute"),
        ("app: 3", "must be module:attribute"),
    ],
)
def test_unusable_manifest_is_refused(tmp_path, manifest, complaint):
    make_environment(tmp_path / "broken", manifest)

    with pytest.raises(InvalidRollout, match=complaint):
        find_environment("broken")
