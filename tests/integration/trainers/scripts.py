"""Scripts as trainers write them, run by a fresh interpreter against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

from tests.support.processes import ROOT

HEAD = """\
import asyncio
import sys

from grid_world_env import Direction, GridWorldAction, GridWorldEnv
from openenv import GenericEnvClient

URL = sys.argv[1]


def moves(n):
    return [GridWorldAction(direction=way) for way in list(Direction) * n]


def play(env, seed=1):
    result = env.reset(seed=seed)
    steps = 0
    for move in moves(5):
        if result.done:
            break
        result = env.step(move)
        steps += 1
    assert env.state().step_count == steps
    return steps


async def play_async(env, seed=1):
    result = await env.reset(seed=seed)
    steps = 0
    for move in moves(5):
        if result.done:
            break
        result = await env.step(move)
        steps += 1
    assert (await env.state()).step_count == steps
    return steps
"""


def run_script(url: str, body: str, *options: str, timeout_s: float = 60, **variables):
    """Run a script; it must end in good time, with nothing on stderr, and print."""
    path = os.pathsep.join([str(ROOT / "envs"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, **variables}  # noqa: TID251
    done = subprocess.run(
        [
            sys.executable,
            "-Wdefault",
            *options,
            "-c",
            HEAD + textwrap.dedent(body),
            url,
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr), done.stderr
    return done.stdout.split()
