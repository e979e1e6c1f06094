from __future__ import annotations

import math
import re
import threading

import pytest

from openenv.core.containers.runtime import LocalDockerProvider
from openenv.core.containers.runtime._container_spec import (
    ContainerOptions,
    container_name,
    container_port,
    options_of,
    publish_address,
)
from openenv.core.containers.runtime._docker_engine import publishing_address
from openenv.core.containers.runtime._exit_hook import ExitHook
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


@pytest.mark.parametrize("host", ["example.org", "", " ", "127.0.0.1 ", "all", 5])
def test_a_port_is_never_published_at_what_is_no_address(host):
    # The engine would publish it on all of its addresses.
    with pytest.raises((TypeError, ValueError), match="publish_host must"):
        options_of("Docker", {"publish_host": host})
    with pytest.raises((TypeError, ValueError), match="publish_host must"):
        LocalDockerProvider(publish_host=host)


@pytest.mark.parametrize(
    ("host", "address"),
    [("localhost", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("::1", "::1")],
)
def test_the_address_of_a_publish_host(host, address):
    assert address == publish_address(host)


@pytest.mark.parametrize(
    ("url", "address"),
    [("tcp://localhost:2375", "127.0.0.1"), ("unix:///x", "127.0.0.1")],
)
def test_an_engine_known_by_name_publishes_at_its_address(monkeypatch, url, address):
    monkeypatch.setenv("DOCKER_HOST", url)

    assert publishing_address(None) in {address, "::1"}


@pytest.mark.parametrize("seconds", [None, "x", math.inf, math.nan, 1e10, -1])
def test_a_stop_timeout_that_cannot_be_is_refused(seconds):
    with pytest.raises((TypeError, ValueError), match="stop_timeout_s must be"):
        LocalDockerProvider(stop_timeout_s=seconds)


class Api:
    """An engine that takes notes."""

    def __init__(self):
        self.removed = []

    def stop(self, _name, timeout):
        raise AssertionError(timeout)

    def remove_container(self, name, **_):
        self.removed.append(name)


def test_a_stop_that_cannot_be_computed_still_removes_the_container():
    provider = object.__new__(LocalDockerProvider)
    provider.stop_timeout_s = None  # type: ignore[assignment]
    provider._container_name = "name"
    provider._exit_hook = ExitHook()
    provider._interrupted = threading.Event()
    provider._client = type("Client", (), {"api": Api(), "close": lambda _: None})()
    with pytest.raises(TypeError):
        provider.stop_container()

    assert ["name"] == provider._client.api.removed


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"memory": [1]}, "memory must be a size such as '512m', or bytes, not list"),
        ({"memory": "much"}, "memory must be .*, not 'much'"),
        ({"memory": 0}, "memory must be .*, not 0"),
        ({"cpus": "two"}, "cpus must be a number above zero, not str"),
        ({"cpus": math.nan}, "cpus must be a finite number above zero, not nan"),
        ({"cpus": math.inf}, "cpus must be a finite number above zero, not inf"),
        ({"gpus": 0}, "gpus, unless 'all', must be .* at least 1, not 0"),
        ({"gpus": "two"}, "gpus, unless 'all', must be a whole number"),
        ({"volumes": "x"}, "volumes must be a sequence of texts, not str"),
        ({"volumes": [5]}, "each of volumes must be text, not int"),
        ({"labels": 5}, "labels must be a mapping .*, not int"),
        ({"labels": {"a": []}}, r"labels\['a'\] must be text or a number, not list"),
        ({"command": 5}, "command must be text or a sequence of texts, not int"),
        ({"command": ["a", 5]}, "each of command must be text, not int"),
        ({"network": 5}, "network must be text, not int"),
        ({"container_port": 0}, "container_port must be .* at least 1, .*not 0"),
        ({"container_port": "80"}, "container_port must be a whole number"),
        ({"env_vars": ["A=1"]}, "env_vars must be a mapping .*, not list"),
        ({"env_vars": {"A=": 1}}, r"env_vars\['A='\] cannot be an environment"),
    ],
)
def test_an_option_that_cannot_be_is_named_before_the_engine_is_asked(
    options, complaint, monkeypatch
):
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises((TypeError, ValueError), match=complaint):
        LocalDockerProvider(**options)


def test_numbers_are_written_out_in_labels():
    options = ContainerOptions(labels={"a": 5})  # type: ignore[dict-item]

    assert "5" == options.arguments()["labels"]["a"]


@pytest.mark.parametrize("name", ["pull", "stop_timeout_s", "on_progress"])
def test_an_option_of_the_constructor_is_called_so(name):
    provider = object.__new__(LocalDockerProvider)
    provider._options = {}

    with pytest.raises(
        ValueError, match=f"{name} belong.* provider=LocalDocker.*{name}"
    ):
        provider._given({name: "x"})
