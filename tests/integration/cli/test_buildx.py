"""`openenv build` with buildx: what it is asked for, by a `docker` that takes notes."""

from __future__ import annotations

import json
import os
import sys

import pytest
from tests.integration.cli.packages import make_good

DOCKER = f"""#!{sys.executable}
import json, os, pathlib, sys
arguments = sys.argv[1:]
note = {{"arguments": arguments}}
if arguments[1] == "build":
    folder = pathlib.Path(arguments[-3])
    files = [path for path in folder.rglob("*") if path.is_file()]
    note["files"] = [str(path.relative_to(folder)) for path in files]
    file = arguments[arguments.index("--file") + 1]
    note["dockerfile"] = pathlib.Path(file).read_text()
with open(os.environ["NOTES"], "a") as notes:
    notes.write(json.dumps(note) + chr(10))
if arguments[1] == "version":
    sys.exit(int(os.environ.get("NO_BUILDX", "0")))
for number in range(30):
    print(f"#{{number}} \\x1b[91mworking\\x1b[0m", flush=True)
sys.exit(int(os.environ.get("FAILS", "0")))
"""


@pytest.fixture
def build(openenv, tmp_path):
    """Run `openenv build my_env` with the noting `docker`; returns its calls, too."""
    scripts, notes = tmp_path / "bin", tmp_path / "notes"
    scripts.mkdir()
    (scripts / "docker").write_text(DOCKER)
    (scripts / "docker").chmod(0o755)
    make_good("typed", tmp_path)

    def run(*options, command=("build", "my_env"), **variables):
        notes.write_text("")
        path = f"{scripts}:{os.environ['PATH']}"  # noqa: TID251 - handed on
        # An engine that is not there: whoever asks it instead fails.
        engine = "unix:///nowhere.sock"
        variables = {"PATH": path, "DOCKER_HOST": engine, **variables}
        done = openenv(*command, *options, NOTES=str(notes), **variables)
        return done, [json.loads(line) for line in notes.read_text().splitlines()]

    return run


def values(arguments, option):
    return [arguments[i + 1] for i, each in enumerate(arguments) if each == option]


def test_a_build_is_loaded_into_the_engine_with_labels(build):
    done, [_, call] = build()

    assert 0 == done.code, done.text
    assert done.out.startswith("openenv-my: built in ")
    arguments = call["arguments"]
    assert ["buildx", "build"] == arguments[:2]
    assert ["--progress", "plain"] == arguments[-2:]
    assert ["openenv-my"] == values(arguments, "--tag")
    assert "--load" in arguments
    assert not {"--push", "--platform", "--no-cache"} & set(arguments)
    assert {
        "openenv.name=my_env",
        "openenv.port=8000",
        "openenv.app=server.app:app",
        "org.opencontainers.image.title=my_env",
        "org.opencontainers.image.version=0.1.0",
        "org.opencontainers.image.description=Guess a hidden number",
    } == set(values(arguments, "--label"))
    assert {"openenv.yaml", "server/Dockerfile"} <= set(call["files"])


def test_every_option_reaches_buildx(build):
    done, [_, call] = build(
        *("--tag", "me/my_env:1", "--platform", "linux/amd64,linux/arm64"),
        *("--build-arg", "A=b=c", "--build-arg", "EMPTY=", "--base-image", "mine:2"),
        *("--no-cache", "--push"),
    )

    assert 0 == done.code, done.text
    arguments = call["arguments"]
    assert ["me/my_env:1"] == values(arguments, "--tag")
    assert ["linux/amd64,linux/arm64"] == values(arguments, "--platform")
    assert {"A=b=c", "EMPTY=", "BASE_IMAGE=mine:2"} == set(
        values(arguments, "--build-arg")
    )
    assert {"--no-cache", "--push"} <= set(arguments)
    assert "--load" not in arguments
    assert "me/my_env:1: built in" in done.out
    assert done.out.endswith(", pushed\n")


def test_several_platforms_cannot_be_loaded_and_that_is_said(build):
    done, calls = build("--platform", "linux/amd64,linux/arm64")

    assert 2 == done.code, done.text
    assert "several platforms make no image that an engine holds: add --push" in (
        done.text
    )
    assert [] == [each for each in calls if each["arguments"][1] == "build"]


def test_a_wheel_and_another_dockerfile_are_in_the_context(build, tmp_path):
    wheel = tmp_path / "openenv-0.11.0-cp312-cp312-linux_x86_64.whl"
    wheel.write_bytes(b"")
    (tmp_path / "Mine").write_text("FROM ${BASE_IMAGE}\nCMD mine\n")

    done, [_, call] = build("--wheel", wheel, "--dockerfile", "Mine")

    assert 0 == done.code, done.text
    assert f"dist/{wheel.name}" in call["files"]
    assert "CMD mine" in call["dockerfile"]


def test_push_to_a_registry_goes_through_buildx(build):
    done, [_, call] = build(
        command=("push", "my_env", "--registry", "localhost:5000/Me")
    )

    assert 0 == done.code, done.text
    assert ["localhost:5000/me/my_env"] == values(call["arguments"], "--tag")
    assert "--push" in call["arguments"]


def test_a_failing_build_shows_its_last_output(build):
    done, _ = build(FAILS="1")

    assert 1 == done.code
    assert "Error: the build failed; the last output:" in done.err
    assert "#29 working" in done.err
    assert "#9 working" not in done.err


def test_a_docker_without_buildx_leaves_it_to_the_engine(build):
    done, [asked] = build(NO_BUILDX="1")

    assert ["buildx", "version"] == asked["arguments"]
    assert 1 == done.code
    assert "the Docker engine does not answer" in done.text
