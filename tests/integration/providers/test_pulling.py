"""When an image is asked of its registry, and how a pull fails."""

from __future__ import annotations

import contextlib
import threading
import time

import docker.errors
import pytest
from tests.integration.providers.registry import serving_registry

from openenv.core.containers.runtime import LocalDockerProvider
from openenv.errors import ProviderError


@pytest.fixture
def registry(engine):
    with serving_registry() as server:
        yield server
        with contextlib.suppress(docker.errors.ImageNotFound):
            engine.images.remove(server.image, force=True)


def start(image, **options):
    """Start the tiny image, which has no program; its pull is what matters."""
    provider = LocalDockerProvider(init=False, **options)
    try:
        with pytest.raises(ProviderError) as raised:
            provider.start_container(image)
    finally:
        provider.close()
    return str(raised.value)


def test_a_missing_image_is_pulled_once_and_told_of(registry):
    lines = []
    assert "no such file" in start(registry.image, on_progress=lines.append)
    assert "no such file" in start(registry.image)

    assert 1 == registry.manifests_asked
    assert any("Pull complete" in line for line in lines)


def test_always_asks_the_registry_again(registry):
    start(registry.image, pull="always")
    start(registry.image, pull="always")

    assert 2 == registry.manifests_asked


def test_never_does_not_ask(registry):
    assert "pull is 'never'" in start(registry.image, pull="never")
    assert 0 == registry.manifests_asked


def test_an_image_that_the_registry_does_not_have(registry):
    image = registry.image.replace("echo", "nothing")

    assert f"cannot start a container of {image}" in start(image)


def test_a_registry_that_is_not_there():
    assert "connection refused" in start("127.0.0.1:9/tiny/echo:v1")


def test_a_pull_that_is_interrupted_ends_soon(registry):
    registry.released.clear()
    provider = LocalDockerProvider(registry.image)

    def interrupt():
        assert registry.layer_asked.wait(20)
        interrupted_at.append(time.monotonic())
        provider.interrupt()

    interrupted_at: list[float] = []
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(ProviderError, match="was interrupted"):
        provider.start_container()
    took_s = time.monotonic() - interrupted_at[0]
    thread.join()
    provider.close()

    assert took_s < 2
