from __future__ import annotations

import re

import pytest

from openenv.core.containers.runtime import LocalDockerProvider
from openenv.core.containers.runtime._container_spec import (
    container_name,
    container_port,
    options_of,
)
from openenv.errors import ProviderError


class Image:
    def __init__(self, exposed=(), **labels):
        ports = {port: {} for port in exposed}
        named = {name.replace("_", "."): value for name, value in labels.items()}
        self.attrs = {"Config": {"ExposedPorts": ports, "Labels": named}}


@pytest.mark.parametrize(
    ("image", "base"),
    [
        ("echo-env", "echo-env"),
        ("echo-env:latest", "echo-env"),
        ("registry.hf.space/org-echo:v1", "org-echo"),
        ("localhost:5000/team/echo_env:v1", "echo_env"),
        ("echo@sha256:0123", "echo"),
        ("sha256:0123", "sha256"),
        ("-odd-", "odd"),
        ("_", "openenv"),
    ],
)
def test_a_name_is_the_images_last_part_and_random(image, base):
    name = container_name(image)

    assert re.fullmatch(rf"{re.escape(base)}-[0-9a-f]{{8}}", name)
    assert name != container_name(image)


@pytest.mark.parametrize(
    ("image", "port"),
    [
        (Image(["7860/tcp"]), 7860),
        (Image(["9000"]), 9000),
        (Image(["9000/tcp", "53/udp"]), 9000),
        (Image(["7860/tcp"], openenv_port="9000"), 9000),
    ],
)
def test_the_port_that_an_image_tells(image, port):
    assert port == container_port(None, image, "test")


def test_a_label_that_is_no_port():
    with pytest.raises(ProviderError, match=r"openenv\.port of the image is 'http'"):
        container_port(None, Image(openenv_port="http"), "test")


def test_an_unknown_option_is_named():
    with pytest.raises(
        ValueError, match=r"arguments for Docker: memroy; there are .*me"
    ):
        options_of("Docker", {"memroy": "1g", "cpus": 1})


def test_an_unknown_pull_policy_is_refused():
    with pytest.raises(ValueError, match="not 'sometimes'"):
        LocalDockerProvider(pull="sometimes")  # type: ignore[arg-type]
