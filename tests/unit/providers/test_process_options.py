"""Options of the providers that run a child: refused before anything is started."""

from __future__ import annotations

import math

import pytest

from openenv.core.containers.runtime import ProcessProvider, UVProvider, uv_provider


@pytest.fixture(autouse=True)
def uv(monkeypatch):
    monkeypatch.setattr(uv_provider.shutil, "which", lambda _: "/bin/uv")


@pytest.mark.parametrize("make", [ProcessProvider, UVProvider])
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"env_vars": ["A=1"]}, "env_vars must be a mapping .*, not list"),
        ({"env_vars": {"A": []}}, r"env_vars\['A'\] must be text or a number"),
        ({"env_vars": {5: "A"}}, "each key of env_vars must be text, not int"),
        ({"context_timeout_s": "x"}, "context_timeout_s must be seconds"),
        ({"context_timeout_s": -1}, "context_timeout_s must be seconds"),
        ({"context_timeout_s": math.nan}, "context_timeout_s must be seconds"),
        ({"host": None}, "host must be text, not NoneType"),
    ],
)
def test_an_option_that_cannot_be_is_named(make, options, complaint):
    given = {"project_path": "."} if make is UVProvider else {}
    with pytest.raises((TypeError, ValueError), match=complaint):
        make(**given, **options)


def test_a_path_that_is_none():
    with pytest.raises(TypeError, match="project_path must be a path, not NoneType"):
        UVProvider(project_path=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="environment must be a path, not NoneType"):
        ProcessProvider(None)  # type: ignore[arg-type]


def test_numbers_are_written_out():
    assert {"A": "5"} == ProcessProvider(env_vars={"A": 5}).env_vars  # type: ignore[dict-item]


def test_a_start_refuses_as_well():
    with pytest.raises(ValueError, match=r"port must be .*, not 70000"):
        ProcessProvider().start(port=70000)
    with pytest.raises(TypeError, match="env_vars must be a mapping"):
        ProcessProvider().start(env_vars=5)  # type: ignore[arg-type]
