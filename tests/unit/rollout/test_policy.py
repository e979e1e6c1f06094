"""Loading a policy by name."""

from __future__ import annotations

import itertools
import textwrap

import pytest

from openenv.core.generic_client import GenericEnvClient
from openenv.rollout.errors import InvalidRollout
from openenv.rollout.policy import load_policy

NAMES = (f"made_policies_{number}" for number in itertools.count())


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module into the current directory; return its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(source):
        name = next(NAMES)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        return name

    return make


def test_function_is_found_and_wants_dicts(module):
    name = module("def choose(observation, episode): return {'x': observation}")

    policy = load_policy(f"{name}:choose")

    assert policy.choose(3, None) == {"x": 3}
    assert policy.client_class is None


def test_class_is_made_and_its_object_called(module):
    name = module("""
        class Group:
            class Choose:
                def __call__(self, observation, episode):
                    return [observation]
    """)

    assert load_policy(f"{name}:Group.Choose").choose(1, None) == [1]


def test_module_may_name_its_client(module):
    name = module("""
        from openenv.core.generic_client import GenericEnvClient
        client_class = GenericEnvClient
        def choose(observation, episode): ...
    """)

    assert load_policy(f"{name}:choose").client_class is GenericEnvClient


@pytest.mark.parametrize(
    ("source", "attribute", "complaint"),
    [
        ("import nothing_of_this_name", "choose", "cannot import policy module .*Mod"),
        ("1 / 0", "choose", "ZeroDivisionError: division by zero"),
        ("", "choose", "has no policy 'choose'"),
        ("choose = 3", "choose", "is a int, not a callable"),
        ("def choose(one): ...", "choose", r"must take \(observation, episode\)"),
        ("class choose:\n def __init__(self, x): ...", "choose", "could not be made"),
        ("client_class = 3\ndef choose(a, b): ...", "choose", "not an EnvClient class"),
    ],
)
def test_unusable_policy_is_the_callers_mistake(module, source, attribute, complaint):
    name = module(source)

    with pytest.raises(InvalidRollout, match=complaint):
        load_policy(f"{name}:{attribute}")


@pytest.mark.parametrize("spec", ["", "module", "module:", ":function"])
def test_spec_without_both_parts_is_refused(spec):
    with pytest.raises(InvalidRollout, match="must be module:function"):
        load_policy(spec)


def test_missing_module_is_named():
    with pytest.raises(InvalidRollout, match="no_such_module_at_all"):
        load_policy("no_such_module_at_all:choose")


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("my_policy.py:act", "--policy my_policy:act"),
        ("./my_policy.py:act", "--policy my_policy:act"),
        ("some/folder/my_policy.py:act", "--policy some.folder.my_policy:act"),
    ],
)
def test_a_file_in_place_of_a_module_is_told_how_to_name_it(module, spec, hint):
    module("")

    with pytest.raises(InvalidRollout, match="name a module, not a file") as raised:
        load_policy(spec)

    assert hint in str(raised.value)
