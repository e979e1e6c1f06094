"""Names of Spaces, and who must agree before their code is installed."""

from __future__ import annotations

import sys

import pytest

from openenv import AutoAction, AutoEnv
from openenv.auto import _hub
from openenv.auto._environment_info import EnvironmentInfo
from openenv.auto._hub import is_hub_name, repo_id, space_url
from openenv.auto._reach import is_local


@pytest.mark.parametrize(
    "name",
    [
        "Org/My_Env",
        "huggingface.co/spaces/Org/My_Env",
        "https://huggingface.co/spaces/Org/My_Env/",
        "https://huggingface.co/Org/My_Env",
    ],
)
def test_a_space_has_one_id_and_one_address(name):
    assert is_hub_name(name)
    assert "Org/My_Env" == repo_id(name)
    assert "https://org-my-env.hf.space" == space_url(repo_id(name))


@pytest.mark.parametrize(
    "name",
    [
        "https://evil.example/a/b",
        "./envs/echo",
        "a/b/c",
        "--index-url/x",
        "huggingface.co",
    ],
)
def test_what_names_no_space_is_refused(name):
    with pytest.raises(ValueError, match="names no Space"):
        AutoEnv.from_env(name, trust_remote_code=True)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8000", True),
        ("LOCALHOST", True),
        ("ws://127.0.0.2:1/ws", True),
        ("http://[::1]:8000", True),
        ("http://0.0.0.0:8000", True),
        ("http://localhost.evil.com", False),
        ("https://org-my-env.hf.space", False),
        ("http://10.0.0.1", False),
    ],
)
def test_which_addresses_are_local(url, local):
    assert local == is_local(url)


@pytest.fixture
def hub(monkeypatch):
    """No environment is installed until one is; commands are noted, not run."""
    monkeypatch.delenv("OPENENV_TRUST_REMOTE_CODE", raising=False)
    ran, there = [], {}
    monkeypatch.setattr(_hub, "installed", lambda: there)

    def install(url):
        ran.append(url)
        there["my"] = _info(url.removeprefix("git+"))

    monkeypatch.setattr(_hub, "_install", install)
    return ran, there


def _info(source_url):
    names = ("client", "MyEnv", "MyAction", "MyObservation", "my-env:latest")
    return EnvironmentInfo(
        "my", "my_env", "openenv-my-env", "1", "", *names, source_url=source_url
    )


def _ask(monkeypatch, answer, *, terminal=True):
    asked = []

    def told(question):
        asked.append(question)
        if answer is None:
            raise EOFError
        return answer

    monkeypatch.setattr("builtins.input", told)
    monkeypatch.setattr(
        sys, "stdin", type("Stdin", (), {"isatty": lambda _: terminal})()
    )
    return asked


@pytest.mark.parametrize("answer", ["", "n", "nonsense", None])
def test_nothing_is_installed_against_the_answer(hub, monkeypatch, answer):
    asked = _ask(monkeypatch, answer)
    with pytest.raises(
        ValueError, match=r"^Installation cancelled by user.\n.*_CODE=1"
    ):
        AutoAction.from_env("me/my_env")

    assert [] == hub[0]
    assert "https://huggingface.co/spaces/me/my_env" in asked[0]


def test_without_a_terminal_nobody_is_asked_and_nothing_installed(hub, monkeypatch):
    asked = _ask(monkeypatch, "y", terminal=False)
    with pytest.raises(ValueError, match=r"no terminal to ask.*\n.*trust_remote_code"):
        AutoEnv.from_env("me/my_env")

    assert [] == asked == hub[0]


@pytest.mark.parametrize("variable", ["1", "true", "YES"])
def test_the_variable_stands_for_consent(hub, monkeypatch, variable):
    monkeypatch.setenv("OPENENV_TRUST_REMOTE_CODE", variable)
    asked = _ask(monkeypatch, "n")
    info = _hub.ensure_installed("me/my_env", trusted=False)

    assert "my" == info.env_key
    assert [] == asked
    assert ["git+https://huggingface.co/spaces/me/my_env"] == hub[0]


def test_consent_at_the_terminal_installs(hub, monkeypatch):
    _ask(monkeypatch, "Yes")
    _hub.ensure_installed("me/my_env", trusted=False)

    assert 1 == len(hub[0])


@pytest.mark.parametrize(
    ("source", "installs"),
    [
        ("https://huggingface.co/spaces/ME/my_env.git", 0),
        (None, 0),
        ("file:///home/me/my_env", 0),
        ("https://huggingface.co/spaces/another/my_env", 1),
    ],
)
def test_what_is_installed_is_not_installed_again(hub, source, installs):
    hub[1]["my"] = _info(source)
    _hub.ensure_installed("me/my_env", trusted=True)

    assert installs == len(hub[0])


def test_a_space_without_an_environment_is_told(hub, monkeypatch):
    monkeypatch.setattr(_hub, "_install", hub[0].append)
    with pytest.raises(ValueError, match=r"no package with openenv.yaml"):
        _hub.ensure_installed("me/my_env", trusted=True)
