"""Run the command `openenv` in a child, and find what it leaves behind."""

from __future__ import annotations

import json
import os
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ROOT, ChildProcess, wait_until

GRID_WORLD = ROOT / "envs" / "grid_world_env"
MARK = "OPENENV_TEST_MARK"
RUN_TIMEOUT_S = 50.0


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    output: str


class CommandLine:
    """Starts commands whose processes, and theirs, carry a mark of their own."""

    def __init__(self, cwd):
        self.mark = str(uuid.uuid4())
        self.cwd = cwd
        self.children = []

    def start(self, *arguments, **variables):
        environment = {
            MARK: self.mark,
            "PYTHONPATH": str(ROOT / "envs"),
            "COLUMNS": "120",
            "PYTHONWARNINGS": "error",
            **variables,
        }
        command = [sys.executable, "-m", "openenv.cli", *map(str, arguments)]
        child = ChildProcess(command, environment=environment, cwd=self.cwd)
        self.children.append(child)
        return child

    def run(self, *arguments, **variables):
        child = self.start(*arguments, **variables)
        return Done(child.wait(RUN_TIMEOUT_S), child.output())

    def processes(self, part=""):
        """Process ids of what carries the mark and has `part` in its command."""
        return [pid for pid in marked(self.mark) if part in command_of(pid)]

    def server(self):
        """Wait for the environment's server and return its process id."""
        return wait_until(lambda: self.processes("rollout._server"), 20.0)[0]

    def stop(self):
        for child in self.children:
            child.stop()


def records_of(path):
    text = Path(path).read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def marked(mark):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                content = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in content:
                found.append(int(entry.name))
    return found


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")
    except OSError:
        return ""


SMALL_ENVIRONMENT = """
import os, sys, time
from openenv.core.env_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

class Say(Action):
    word: str

class Heard(Observation):
    word: str = ""

class Small(Environment[Say, Heard, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True
    LENGTH = 3

    def __init__(self):
        super().__init__()
        self.steps = 0

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.steps, self.seed = 0, seed
        return Heard()

    def step(self, action, timeout_s=None, **kwargs):
        self.steps += 1
        self.react(action)
        return Heard(word=action.word, reward=1.0, done=self.steps >= self.LENGTH)

    def react(self, action):
        pass

    @property
    def state(self):
        return State(step_count=self.steps)

class Mine(Small):
{body}

app = create_app(Mine, Say, Heard, env_name="small")
"""
