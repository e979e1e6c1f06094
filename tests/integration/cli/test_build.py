"""`openenv build` on the real engine: from nothing to an image that plays."""

from __future__ import annotations

import asyncio
import random
import uuid

import pytest
from tests.integration.cli.images import make_wheel, sleep_instead
from tests.integration.cli.packages import make_good

from openenv.core.generic_client import GenericEnvClient

pytest.importorskip("docker")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def tag(engine):
    name = f"openenv-cli-test:{uuid.uuid4().hex[:8]}"
    yield name
    if engine.images.list(name):
        engine.images.remove(name, force=True)


@pytest.mark.parametrize(
    "template",
    [
        "msgspec",
        pytest.param("typed", marks=pytest.mark.nightly),
        pytest.param("mcp", marks=pytest.mark.nightly),
    ],
)
def test_from_nothing_to_a_hundred_episodes_of_a_container(
    openenv, engine, request, tag, tmp_path, template
):
    """`init`, `validate`, `build`, `from_docker_image`, as a user has them."""
    wheel = make_wheel(tmp_path)
    base = request.getfixturevalue("base_with_tools" if template == "mcp" else "base")
    options = ("--tag", tag, "--base-image", base, "--wheel", wheel)

    for command in (
        ("init", "my_env", "--template", template),
        ("validate", "my_env", "--strict"),
        ("build", "my_env", *options),
    ):
        done = openenv(*command, timeout_s=250)
        assert 0 == done.code, done.text

    assert 100 == asyncio.run(play_from_image(tag, template, 100))
    assert [] == engine.containers.list(all=True, filters={"ancestor": tag})
    assert "player" == engine.images.get(tag).attrs["Config"]["User"]


def test_an_image_is_labelled_and_its_containers_are_listed_and_stopped(
    openenv, engine, base, tag, tmp_path
):
    folder = make_good("msgspec", tmp_path)
    sleep_instead(folder, base)

    done = openenv("build", folder, "--tag", tag, timeout_s=250)

    assert 0 == done.code, done.text
    assert f"{tag}: " in done.out
    assert " MB, built in " in done.out
    labels = engine.images.get(tag).labels
    assert ("my_env", "8000", "0.1.0") == (
        labels["openenv.name"],
        labels["openenv.port"],
        labels["org.opencontainers.image.version"],
    )
    assert not (folder / "dist").exists()
    container = engine.containers.run(tag, detach=True, ports={"8000/tcp": None})
    try:
        listed = openenv("ps")
        assert container.short_id[:12] in listed.out, listed.text
        assert "my_env" in listed.out
        stopped = openenv("stop", container.short_id)
        assert 0 == stopped.code, stopped.text
        assert is_gone(engine, container)
    finally:
        if not is_gone(engine, container):
            container.remove(force=True)


def test_a_failing_step_shows_its_last_output(openenv, engine, base, tag, tmp_path):
    del engine
    folder = make_good("typed", tmp_path)
    path = folder / "server" / "Dockerfile"
    path.write_text(path.read_text().replace("RUN set -eu;", "RUN echo alas; exit 3;"))

    done = openenv("build", folder, "--tag", tag, "--base-image", base, timeout_s=250)

    assert 1 == done.code
    assert "Error: the build failed; the last output:" in done.err
    assert "alas" in done.err
    assert "3" in done.err.splitlines()[-1]


def test_a_base_without_an_argument_replaces_the_first_from(
    openenv, engine, base, tag, tmp_path
):
    folder = make_good("typed", tmp_path)
    (folder / "server" / "Dockerfile").unlink()
    (folder / "Dockerfile").write_text("FROM nowhere/at-all:1\nCMD python\n")

    done = openenv("build", folder, "--tag", tag, "-b", base, timeout_s=250)

    assert 0 == done.code, done.text
    assert "FROM nowhere" in (folder / "Dockerfile").read_text()
    assert engine.images.list(tag)


def test_an_engine_that_is_not_there_is_one_sentence(openenv, tmp_path):
    folder = make_good("typed", tmp_path)

    done = openenv("build", folder, DOCKER_HOST="unix:///nowhere.sock")

    assert 1 == done.code
    assert "Error: the Docker engine does not answer" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 1, "nowhere is no folder"),
        (["empty"], 1, "it has no openenv.yaml"),
        (["my_env", "--build-arg", "A"], 2, "--build-arg must be KEY=VALUE, got 'A'"),
        (["my_env", "--tag", ""], 2, "--tag is empty"),
        (["my_env", "--tag", "NO TAG"], 2, "invalid tag 'NO TAG'"),
        (["my_env", "--tag", "UPPER"], 2, "its name in lower case"),
        (["my_env", "--tag", "a:b:c"], 2, "invalid tag 'a:b:c'"),
        (["my_env", "--tag", "-x"], 2, "invalid tag '-x'"),
        (["my_env", "--wheel", "nope.whl"], 2, "nope.whl is no wheel of openenv"),
        (["my_env", "--dockerfile", "nope"], 2, "nope is no file"),
        (["my_env", "--platform", "linux/a,linux/b"], 2, "add --push"),
    ],
)
def test_a_mistake_is_one_sentence(openenv, tmp_path, arguments, code, words):
    make_good("typed", tmp_path)
    (tmp_path / "empty").mkdir()

    done = openenv("build", *arguments)

    assert code == done.code, done.text
    assert words in done.text


async def play_from_image(tag, template, episodes):
    """Play episodes at random in a container of the image; tells how many ended."""
    played, rng = 0, random.Random(1)
    client = await GenericEnvClient.from_docker_image(tag)
    async with client:
        for seed in range(episodes):
            result = await client.reset(seed=seed)
            while not result.done:
                result = await client.step(guess(template, rng.randint(1, 100)))
            played += 1
    return played


def guess(template, number):
    if template != "mcp":
        return {"guess": number}
    arguments = {"number": number}
    return {"type": "call_tool", "tool_name": "guess", "arguments": arguments}


def is_gone(engine, container):
    return not engine.containers.list(all=True, filters={"id": container.id})
