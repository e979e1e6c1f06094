"""The lazy faces: what they list is what they give, and the types see the same."""

from __future__ import annotations

import importlib

import pytest

import openenv
import openenv.auto
import openenv.core
import openenv.core.env_server

FACES = [openenv, openenv.auto, openenv.core, openenv.core.env_server]


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_every_name_that_a_face_lists_is_there(face):
    missing = [name for name in face.__all__ if not hasattr(face, name)]

    assert [] == missing
    assert set(face.__all__) <= set(dir(face))


def test_the_servers_list_is_its_table():
    table = openenv.core.env_server.MODULES
    names = sorted(name for names in table.values() for name in names)

    assert names == sorted(openenv.core.env_server.__all__)


def test_the_core_gives_the_servers_own_objects():
    for module, names in openenv.core.env_server.MODULES.items():
        for name in names:
            original = getattr(importlib.import_module(module), name)
            assert original is getattr(openenv.core, name)


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_an_unknown_name_is_an_attribute_error(face):
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        face.nonsense  # noqa: B018 - the access is what is tested
