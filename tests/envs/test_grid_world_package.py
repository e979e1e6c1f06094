"""What the grid world ships: manifest, package, container, speed of a step."""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path

import yaml

from grid_world_env import models
from grid_world_env.models import Direction, GridWorldAction
from grid_world_env.server.environment import GridWorldEnvironment

FOLDER = Path(models.__file__).parent


def test_manifest_has_upstreams_keys():
    manifest = yaml.safe_load((FOLDER / "openenv.yaml").read_text())

    assert manifest == {
        "spec_version": 1,
        "name": "grid_world_env",
        "type": "space",
        "runtime": "fastapi",
        "app": "server.app:app",
        "port": 8000,
    }


def test_package_contains_the_folder_and_its_server():
    package = tomllib.loads((FOLDER / "pyproject.toml").read_text())

    assert package["project"]["name"] == "openenv-grid-world-env"
    assert package["project"]["dependencies"] == ["openenv[core]>=0.11"]
    assert package["tool"]["setuptools"]["package-dir"] == {
        "grid_world_env": ".",
        "grid_world_env.server": "server",
    }


def test_container_takes_openenv_from_a_wheel_and_its_base_as_an_argument():
    lines = (FOLDER / "server" / "Dockerfile").read_text().splitlines()
    commands = "\n".join(line for line in lines if not line.startswith("#"))

    assert "ARG BASE_IMAGE=python:3.11-slim\nFROM ${BASE_IMAGE}" in commands
    assert "--mount" not in commands
    assert "file://" in commands
    installed = re.findall(r"pip install[^\n]*(\bopenenv\b[^\n]*)", commands)
    assert len(installed) == 1
    assert installed[0].startswith("openenv[core] @ file://")


def test_client_and_server_meet_only_in_models():
    client = (FOLDER / "client.py").read_text()

    assert "grid_world_env.models" in client
    assert ".server" not in client.replace("openenv.core.env_server", "")


def test_step_takes_well_under_a_millisecond_of_cpu():
    environment, steps = GridWorldEnvironment(), 0
    actions = [GridWorldAction(direction=way) for way in Direction]
    began = time.process_time()
    for seed in range(50):
        observation = environment.reset(seed=seed)
        while not observation.done:
            observation = environment.step(actions[steps % 4])
            steps += 1

    assert (time.process_time() - began) / steps < 0.0005
