"""The manifest: what is taken, what is refused, and where it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openenv.cli.manifest import (
    Manifest,
    Severity,
    make_schema_text,
    read_manifest,
    schema_text,
)

ROOT = Path(__file__).parents[3]
UPSTREAM_0_10 = """\
spec_version: 1
name: my_env
version: 0.1.0
type: space
runtime: fastapi
app: server.app:app
port: 8000
variables:
  LEVEL: hard
  TRIES: 3
validation:
  reward:
    range: [0.0, 1.0]
    oracle_tolerance: 0.0
    floor_margin: 0.1
  resources:
    cpu: 1
    memory_mb: 1024
    disk_mb: 512
    episode_timeout_s: 60
  capabilities:
    verifier:
      kind: reward_channel
  types:
    tags: [demo]
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "openenv.yaml"
        path.write_text(text, encoding="utf-8")
        return read_manifest(path)

    return read_text


def test_upstreams_manifest_is_taken_without_a_word(read):
    result = read(UPSTREAM_0_10)

    assert result.problems == ()
    assert result.manifest.variables == {"LEVEL": "hard", "TRIES": 3}
    assert result.manifest.validation.types.tags == ["demo"]


def test_what_is_left_out_has_upstreams_defaults(read):
    manifest = read("spec_version: 1\nname: x\n").manifest

    assert ("server.app:app", 8000, "space") == (
        manifest.app,
        manifest.port,
        manifest.type,
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("name: x\n", 1, 1, "spec_version: the key is required"),
        ("spec_version: 1\n", 1, 1, "name: the key is required"),
        ("spec_version: 3\nname: x\n", 1, 1, "spec_version: the value should be 1 or"),
        ("spec_version: 1\nname: x\nport: '80'\n", 3, 1, "port: the value should be a"),
        ("spec_version: 1\nname: x\nport: 0\n", 3, 1, "greater than or equal to 1"),
        ("spec_version: 1\nname: x\napp: server.app\n", 3, 1, "app: string should"),
        ("spec_version: 1\nname: x\nversion: 1.0\n", 3, 1, "put it in quotes"),
        ("spec_version: 1\nname: x\nname: y\n", 3, 1, "name: the key is given twice"),
        (
            "spec_version: 1\nname: x\nvariables:\n  A: [1]\n",
            *(4, 3, "variables.A: the value should be a valid string"),
        ),
        ("spec_version: 1\nname: [x\n", 3, 1, "no YAML: "),
        ("spec_version: 1\nname: *x\n", 2, 7, "no YAML: found undefined alias"),
        ("- name\n", 1, 1, "the manifest must be a mapping"),
        ("", 1, 1, "the manifest must be a mapping"),
        (
            UPSTREAM_0_10.replace("[0.0, 1.0]", "[1.0, 0.0]"),
            *(12, 3, "validation.reward: range must increase"),
        ),
        (
            UPSTREAM_0_10.replace("    cpu:", "    cpus:"),
            *(16, 3, "validation.resources.cpu: the key is required"),
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(read, text, line, column, words):
    result = read(text)

    assert result.manifest is None
    first = result.errors[0]
    assert (line, column) == (first.line, first.column), first
    assert words in first.message
    assert result.describe(first).startswith(f"{result.path}:{line}:{column}: ")


def test_an_unknown_key_is_a_warning(read):
    result = read("spec_version: 1\nname: x\nprot: 8000\n")

    assert result.manifest is not None
    [problem] = result.problems
    assert (Severity.WARNING, 3, 1) == (problem.severity, problem.line, problem.column)
    assert problem.message.startswith("prot: ")


def test_an_unknown_key_of_the_validation_block_is_an_error(read):
    result = read(UPSTREAM_0_10.replace("    oracle_tol", "    oracel_tol"))

    assert ["validation.reward.oracel_tolerance: the key is not known"] == [
        error.message for error in result.errors
    ]


def test_all_mistakes_are_told_at_once_in_order(read):
    result = read("spec_version: 1\nname: -x\nport: 0\nmore: 1\napp: 7\n")

    assert [2, 3, 5] == [problem.line for problem in result.problems]


def test_a_manifest_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "openenv.yaml"
    path.write_bytes(b"name: \xff\xfe\n")

    assert "the file is not UTF-8" == read_manifest(path).errors[0].message


def test_the_shipped_schema_is_that_of_the_model():
    assert make_schema_text() == schema_text()
    schema = json.loads(schema_text())
    assert set(Manifest.model_fields) == set(schema["properties"])


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*/openenv.yaml")))
def test_the_manifests_of_the_repository_are_good(path):
    assert () == read_manifest(path).problems
