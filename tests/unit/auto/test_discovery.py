"""Which environments the metadata of packages tells of, and by which names."""

from __future__ import annotations

import importlib
import json
import sys

import pytest

from openenv import AutoAction, AutoEnv
from openenv.auto import _discovery
from openenv.auto._discovery import find, installed

CLIENT = """
from pydantic import BaseModel
from openenv.core.env_client import EnvClient

class Move(BaseModel):
    way: str

class Board(BaseModel):
    text: str

class BigBoardClient(EnvClient[Move, Board, dict]):
    pass
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write an installed distribution; `client` is the text of its client.py."""
    monkeypatch.syspath_prepend(tmp_path)
    modules = []

    def write(name, module, manifest, *, editable=False, client=""):
        folder, info = tmp_path / module, tmp_path / f"{module}-1.2.dist-info"
        folder.mkdir()
        info.mkdir()
        modules.append(module)
        (folder / "__init__.py").touch()
        (folder / "client.py").write_text(client)
        (folder / "openenv.yaml").write_text(manifest)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\nSummary: It plays\n"
        )
        files = "__editable__.pth" if editable else f"{module}/openenv.yaml"
        (info / "RECORD").write_text(f"{files},,\n")
        if editable:
            origin = {"url": folder.as_uri(), "dir_info": {"editable": True}}
            (info / "direct_url.json").write_text(json.dumps(origin))
        importlib.invalidate_caches()
        return folder

    yield write
    for module in modules:
        for name in [m for m in sys.modules if m.partition(".")[0] == module]:
            del sys.modules[name]


def test_names_follow_from_the_manifests_name(package):
    package(
        "openenv-big-board-env", "big_board_env", "name: big_board\nspec_version: 1"
    )

    assert {
        "env_key": "big_board",
        "name": "big_board_env",
        "package": "openenv-big-board-env",
        "version": "1.2",
        "description": "It plays",
        "env_class": "BigBoardEnv",
        "action_class": "BigBoardAction",
        "observation_class": "BigBoardObservation",
        "module": "big_board_env.client",
        "default_image": "big-board-env:latest",
        "spec_version": 1,
    } == AutoEnv.get_env_info("big-board")
    assert {
        "env_key": "big_board",
        "env_name": "big_board_env",
        "package": "openenv-big-board-env",
        "action_class": "BigBoardAction",
        "observation_class": "BigBoardObservation",
        "module": "big_board_env.client",
    } == AutoAction.get_action_info("big_board")


def test_the_manifest_may_say_more(package):
    package(
        *("other", "other_env"),
        "name: other\ndescription: Plays well\naction: Move\nobservation: Board",
    )
    info = find("other")

    assert ("Move", "Board") == (info.action_class_name, info.observation_class_name)
    assert "Plays well" == info.description


@pytest.mark.parametrize(
    "name", ["big_board", "big-board", "big_board_env", "Big-Board-Env", " big_board "]
)
def test_one_environment_has_several_spellings(package, name):
    package("any-name", "big_board_env", "name: big_board_env")

    assert "any-name" == find(name).package_name


def test_an_editable_installation_is_found_by_its_name(package):
    package("openenv-big_board.env", "big_board_env", "{}", editable=True)
    package("something-else", "small_board_env", "{}", editable=True)

    assert "big_board" in installed()
    assert "small_board" not in installed()


@pytest.mark.parametrize("manifest", ["name: [", "just text", "\0", "{a: " * 2000])
def test_what_cannot_be_read_is_left_out_with_a_warning(package, caplog, manifest):
    package("broken", "broken_env", manifest)
    package("sound", "sound_env", "name: 7")

    assert {"sound"} == set(installed()) & {"sound", "broken"}
    assert "broken_env/openenv.yaml is left out" in caplog.text


def test_the_rest_of_a_removed_package_is_no_environment(package, tmp_path):
    package("sound", "sound_env", "name: sound")
    package("gone", "gone_env", "name: gone")
    (tmp_path / "gone_env-1.2.dist-info" / "METADATA").unlink()
    package("moved", "moved_env", "name: moved")
    (tmp_path / "moved_env" / "openenv.yaml").unlink()

    assert {"sound"} == set(installed()) & {"sound", "gone", "moved"}


def test_unknown_names_are_answered_with_those_like_them(package):
    package("a", "big_board_env", "name: big_board")
    package("b", "chess_env", "name: chess")
    with pytest.raises(
        ValueError,
        match="^Unknown environment 'big_bord'.\nDid you mean: big_board\\?\n"
        r"Available environments: .*big_board, .*chess",
    ):
        AutoEnv.from_env("big_bord")
    with pytest.raises(ValueError, match=r"'xyz'.\nAvailable") as caught:
        AutoAction.from_env("xyz")
    with pytest.raises(ValueError, match=r"^Unknown environment: xyz$"):
        AutoEnv.get_env_info("xyz")

    assert "Did you mean" not in str(caught.value)


def test_without_any_environment_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(_discovery.metadata, "distributions", lambda: iter(()))
    with pytest.raises(ValueError, match=r"^No OpenEnv environments found.\n"):
        AutoEnv.get_env_class("echo")
    AutoEnv.list_environments()
    AutoAction.list_actions()

    assert 2 * "No OpenEnv environments found.\n" == capsys.readouterr().out


def test_lists_have_a_line_for_each(package, capsys):
    package("a", "big_board_env", "name: big_board")
    AutoEnv.list_environments()
    AutoAction.list_actions()
    lines = capsys.readouterr().out.splitlines()

    assert "big_board  1.2  It plays" in lines
    assert "big_board  BigBoardAction" in lines


def test_classes_of_other_names_are_those_the_client_says(package):
    package("a", "big_board_env", "name: big_board", client=CLIENT)
    info = find("big_board")

    assert "BigBoardClient" == AutoEnv.get_env_class("big_board").__name__
    assert "Move" == AutoAction.from_env("big_board").__name__
    assert "Board" == info.get_observation_class().__name__


def test_tools_are_called_by_an_action_of_their_own(package):
    package(
        *("a", "tools_env", "name: tools"),
        client="from openenv.core.mcp_client import MCPToolClient\n"
        "class ToolsEnv(MCPToolClient): pass\n",
    )

    assert "CallToolAction" == AutoAction.from_env("tools").__name__


@pytest.mark.parametrize("client", ["", "import not_installed_anywhere"])
def test_a_package_without_its_class_is_an_import_error(package, client):
    package("a", "big_board_env", "name: big_board", client=client)
    with pytest.raises(ImportError, match=r"no class BigBoardEnv|not_installed"):
        AutoEnv.from_env("big_board", base_url="http://127.0.0.1:9")
    with pytest.raises(ImportError):
        AutoAction.from_env("big_board")


@pytest.mark.parametrize("cls", [AutoEnv, AutoAction])
def test_nothing_is_made_of_the_classes(cls):
    name = cls.__name__
    with pytest.raises(
        TypeError, match=f"^{name} is a factory class .* Use {name}.from_hub"
    ):
        cls("echo")
