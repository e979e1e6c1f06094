"""Packages to validate: good ones of different shapes, and broken ones, one fault each.

A broken one is the fresh package of a template with one edit. `check` names the check
that must find the fault, `words` what it must say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openenv.cli._scaffold import Template, create_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "my_env"


@dataclass(frozen=True)
class Broken:
    """A fault: what is edited, which check finds it, what that check says.

    `shape` is the good package that is edited.
    """

    name: str
    check: str
    words: str
    edit: Callable[[Path], None]
    shape: str = "typed"


def make_broken(broken: Broken, parent: Path) -> Path:
    folder = make_good(broken.shape, parent)
    broken.edit(folder)
    return folder


def replace(name, old, new, *, count=1):
    def edit(folder):
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {name}"
        path.write_text(text.replace(old, new, count), encoding="utf-8")

    return edit


def write(name, text):
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def append(name, text):
    def edit(folder):
        path = folder / name
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")

    return edit


def remove(name):
    return lambda folder: (folder / name).unlink()


def several(*edits):
    def edit(folder):
        for each in edits:
            each(folder)

    return edit


APP, ENVIRONMENT, CLIENT = "server/app.py", "server/environment.py", "client.py"
MODELS, DOCKERFILE = "models.py", "server/Dockerfile"
STEP = "        self._state.step_count += 1\n"
RESET = "        self._over = False\n"

FILES = (
    Broken("no manifest", "manifest.exists", "no openenv.yaml", remove("openenv.yaml")),
    Broken(
        "port is text",
        "manifest.valid",
        "openenv.yaml:8:1: port: the value should be a valid integer, got '8000'",
        replace("openenv.yaml", "port: 8000", "port: '8000'"),
    ),
    Broken(
        "manifest is no YAML",
        "manifest.valid",
        "no YAML",
        replace("openenv.yaml", "name: my_env", "name: [my_env"),
    ),
    Broken(
        "manifest without a name",
        "manifest.valid",
        "name: the key is required",
        replace("openenv.yaml", "name: my_env\n", ""),
    ),
    Broken(
        "misspelt key",
        "manifest.keys",
        "openenv.yaml:9:1: varibles",
        append("openenv.yaml", "varibles: {A: b}\n"),
    ),
    Broken("no README", "package.files", "missing: README.md", remove("README.md")),
    Broken("no client", "package.files", "missing: client.py", remove("client.py")),
    Broken("no app", "package.files", "server/app.py", remove("server/app.py")),
    Broken(
        "no pyproject", "pyproject.valid", "no pyproject.toml", remove("pyproject.toml")
    ),
    Broken(
        "pyproject is no TOML",
        "pyproject.valid",
        "line 2",
        write("pyproject.toml", "[project]\nname = my_env\n"),
    ),
    Broken(
        "pyproject without a version",
        "pyproject.valid",
        "no version",
        replace("pyproject.toml", 'version = "0.1.0"\n', ""),
    ),
    Broken(
        "another openenv",
        "pyproject.openenv",
        "does not depend on openenv",
        several(
            replace("pyproject.toml", "openenv[core]>=0.11", "openenv-foo"),
        ),
    ),
    Broken(
        "no script",
        "pyproject.script",
        "no server",
        replace("pyproject.toml", "server = ", "serve = "),
    ),
    Broken(
        "script without its function",
        "pyproject.script",
        "has no main()",
        replace(APP, "def main()", "def start()"),
    ),
    Broken(
        "script without its module",
        "pyproject.script",
        "no module my_env.server.main",
        replace("pyproject.toml", "my_env.server.app:main", "my_env.server.main:main"),
    ),
    Broken(
        "wheel without its server",
        "pyproject.packages",
        "leaves out my_env.server",
        replace("pyproject.toml", '["my_env", "my_env.server"]', '["my_env"]'),
    ),
    Broken(
        "import of what is not declared",
        "pyproject.imports",
        "server/environment.py:3: imports requests",
        replace(ENVIRONMENT, "import random\n", "import requests\nimport random\n"),
    ),
    Broken(
        "imports under an if and in a class",
        "pyproject.imports",
        "models.py:2: imports numpy",
        write("models.py", "if True:\n    import numpy as np\n"),
    ),
    Broken(
        "no Dockerfile", "docker.exists", "no server/Dockerfile", remove(DOCKERFILE)
    ),
    Broken(
        "Dockerfile from nothing",
        "docker.exists",
        "has no FROM",
        replace(DOCKERFILE, "FROM ${BASE_IMAGE}", "# FROM ${BASE_IMAGE}"),
    ),
    Broken(
        "no command",
        "docker.command",
        "has no CMD",
        lambda folder: write(
            DOCKERFILE, re.sub(r"\nCMD \[.*", "", (folder / DOCKERFILE).read_text())
        )(folder),
    ),
    Broken(
        "command of another app",
        "docker.command",
        "does not serve the manifest's app server.app:app",
        replace(DOCKERFILE, '"my_env.server.app"', '"my_env.server.application"'),
    ),
    Broken(
        "port of the command",
        "docker.port",
        "CMD serves port 7860, the manifest says 8000",
        replace(DOCKERFILE, '"8000"]', '"7860"]'),
    ),
    Broken(
        "port of the manifest",
        "docker.port",
        "CMD serves port 8000, the manifest says 7860",
        replace("openenv.yaml", "port: 8000", "port: 7860"),
    ),
    Broken(
        "command on loopback",
        "docker.host",
        "CMD listens on 127.0.0.1",
        replace(DOCKERFILE, '"0.0.0.0"', '"127.0.0.1"'),
    ),
    Broken(
        "dependency not in the image",
        "docker.dependencies",
        "does not install numpy",
        several(
            replace("pyproject.toml", '>=0.11"]', '>=0.11", "NumPy>=2"]'),
            replace(DOCKERFILE, "pip install --no-cache-dir .\n", "true\n"),
        ),
    ),
    Broken(
        "app without its module",
        "package.files",
        "missing: server/main.py",
        replace("openenv.yaml", "app: server.app:app", "app: server.main:app"),
    ),
    Broken(
        "unknown instruction",
        "docker.instructions",
        ": EXPOZE is no instruction",
        replace(DOCKERFILE, "EXPOSE 8000", "EXPOZE 8000"),
    ),
    Broken(
        "copy from outside",
        "docker.copy",
        "copies ../shared from outside of the build's folder",
        replace(DOCKERFILE, "COPY . .", "COPY --chown=1000 . ../shared ./"),
    ),
    Broken(
        "copy from outside, exec form",
        "docker.copy",
        "copies server/../.. from outside",
        replace(DOCKERFILE, "COPY . .", 'COPY . .\nADD ["server/../..", "/x"]'),
    ),
    Broken(
        "another port is exposed",
        "docker.expose",
        "exposes 7860, the manifest says 8000",
        replace(DOCKERFILE, "EXPOSE 8000", "EXPOSE 7860/tcp"),
    ),
    Broken(
        "port of a variable that nobody sets",
        "docker.variables",
        "CMD reads $PORT, which nothing sets",
        several(
            lambda folder: write(
                DOCKERFILE,
                re.sub(
                    r"\nCMD \[.*",
                    "\nCMD python -m my_env.server.app --host 0.0.0.0 --port $PORT",
                    (folder / DOCKERFILE).read_text(),
                ),
            )(folder),
        ),
    ),
    Broken(
        "BuildKit alone",
        "docker.classic",
        "RUN --mount needs BuildKit",
        replace(DOCKERFILE, "RUN set", "RUN --mount=type=cache,target=/c set"),
    ),
)

CODE = (
    Broken(
        "client imports the server",
        "client.import",
        "imports my_env.server",
        append(CLIENT, "\nfrom my_env.server import environment\n"),
    ),
    Broken(
        "client without a client",
        "client.import",
        "no subclass of EnvClient",
        several(
            write(CLIENT, "from openenv.core.env_client import EnvClient\n"),
            write("__init__.py", ""),
        ),
    ),
    Broken(
        "client needs what is missing",
        "client.import",
        "ModuleNotFoundError: No module named 'not_there'",
        replace(CLIENT, "\n\n", "\n\nimport not_there\n"),
    ),
    Broken(
        "app raises",
        "app.import",
        "ArithmeticError: no licence",
        replace(
            APP, "\n\ndef main", '\nraise ArithmeticError("no licence")\n\ndef main'
        ),
    ),
    Broken(
        "app exits",
        "app.import",
        "SystemExit: 3",
        replace(APP, "\n\ndef main", "\nraise SystemExit(3)\n\ndef main"),
    ),
    Broken(
        "app ends the process",
        "app.import",
        "ended with exit code 7",
        replace(APP, "\n\ndef main", "\nimport os\nos._exit(7)\n\ndef main"),
    ),
    Broken(
        "app with a wrong name",
        "app.import",
        "no application 'app'",
        replace(APP, "\napp = ", "\napplication = "),
    ),
    Broken(
        "app of another make",
        "app.import",
        "was not made by create_app",
        append(APP, "\nfrom fastapi import FastAPI\n\napp = FastAPI()\n"),
    ),
    Broken(
        "action and observation changed places",
        "types.action",
        "MyObservation derives from Observation",
        replace(
            APP,
            "    MyAction,\n    MyObservation,\n",
            "    MyObservation,\n    MyAction,\n",
        ),
    ),
    Broken(
        "observation without done",
        "types.observation",
        "has no done and no reward",
        several(
            replace(MODELS, "MyObservation(Observation)", "MyObservation(BaseModel)"),
            replace(MODELS, "import Field", "import BaseModel, Field"),
        ),
    ),
    Broken(
        "state without a count",
        "types.state",
        "has no step_count",
        several(
            replace(MODELS, "MyState(State)", "MyState(BaseModel)"),
            replace(
                MODELS,
                "    seed: int",
                "    episode_id: str | None = None\n    seed: int",
            ),
            replace(MODELS, "import Field", "import BaseModel, Field"),
        ),
    ),
    Broken(
        "client with an action of its own",
        "types.client",
        "the client's action is Mine, the server's is MyAction",
        several(
            replace(CLIENT, "EnvClient[MyAction,", "EnvClient[Mine,"),
            replace(
                CLIENT, "\n\nclass", "\n\nclass Mine(MyAction):\n    pass\n\n\nclass"
            ),
        ),
    ),
    Broken(
        "reset raises",
        "contract.reset",
        "reset() failed",
        replace(ENVIRONMENT, RESET, '        raise ArithmeticError("no board")\n'),
    ),
    Broken(
        "reset is done",
        "contract.reset",
        "an observation that is done",
        replace(ENVIRONMENT, "tries_left=TRIES)", "tries_left=TRIES, done=True)"),
    ),
    Broken(
        "step raises",
        "contract.step",
        "no such guess",
        replace(ENVIRONMENT, STEP, '        raise ArithmeticError("no such guess")\n'),
    ),
    Broken(
        "state raises",
        "contract.state",
        "state() failed",
        replace(ENVIRONMENT, "return self._state\n", "return self._stat\n"),
    ),
    *(
        Broken(
            f"step {number} raises",
            "contract.step",
            f"step() number {number} with {{'guess': ",
            replace(
                ENVIRONMENT,
                STEP,
                f"{STEP}        if self._state.step_count == {number}:\n"
                '            raise ValueError("no such guess")\n',
            ),
        )
        for number in (4, 7, 8)
    ),
    Broken(
        "second reset raises",
        "contract.reset",
        "reset() number 2 failed",
        several(
            replace(
                ENVIRONMENT,
                RESET,
                f"{RESET}        if self._state.episode_id:\n"
                '            raise ValueError("no second game")\n',
            ),
        ),
    ),
    Broken(
        "state raises after two steps",
        "contract.state",
        "state() after step 2 failed",
        replace(
            ENVIRONMENT,
            "        return self._state\n",
            "        if self._state.step_count == 2:\n"
            '            raise ValueError("no state")\n'
            "        return self._state\n",
        ),
    ),
    Broken(
        "environment cannot be made",
        "contract.reset",
        "ArithmeticError: no licence",
        replace(
            ENVIRONMENT,
            "        self._hidden = 0\n",
            '        raise ArithmeticError("no licence")\n',
        ),
    ),
    Broken(
        "observation of a wrong type",
        "contract.step",
        "\ntries_left\n  Input should be a valid integer",
        replace(ENVIRONMENT, "tries_left=tries_left", 'tries_left="few"'),
    ),
    Broken(
        "reward no float can hold",
        "contract.reward",
        "the reward of step 1 is 1000",
        replace(ENVIRONMENT, "else 0.0,", "else 10**400,"),
    ),
    Broken(
        "reward counts what the class holds",
        "contract.sessions",
        "reward of step 1 is",
        several(
            replace(
                ENVIRONMENT,
                "    def __init__",
                "    LOG: list[int] = []\n\n    def __init__",
            ),
            replace(ENVIRONMENT, STEP, f"{STEP}        self.LOG.append(1)\n"),
            replace(ENVIRONMENT, "else 0.0,", "else float(len(self.LOG)),"),
        ),
    ),
    Broken(
        "metadata counts what the module holds",
        "contract.sessions",
        "plays differently after other sessions",
        several(
            replace(ENVIRONMENT, "TRIES = 10\n", "TRIES = 10\nLOG: list[int] = []\n"),
            replace(ENVIRONMENT, STEP, f"{STEP}        LOG.append(1)\n"),
            replace(
                ENVIRONMENT,
                "            done=self._over,",
                '            metadata={"log": len(LOG)},\n            done=self._over,',
            ),
        ),
    ),
    Broken(
        "client sends a wrong key",
        "contract.client",
        "guess: Field required",
        append(
            CLIENT,
            "\n    def _step_payload(self, action):\n"
            "        return {'guss': action.guess}\n",
        ),
    ),
    Broken(
        "episode id is dropped",
        "contract.episode_id",
        "but state.episode_id is",
        replace(ENVIRONMENT, "episode_id or str(uuid4())", "str(uuid4())"),
    ),
    Broken(
        "steps are not counted",
        "contract.step_count",
        "state.step_count is 0 after 1 steps",
        several(
            replace(ENVIRONMENT, STEP, "        self._tries += 1\n"),
            replace(ENVIRONMENT, RESET, f"{RESET}        self._tries = 0\n"),
            replace(
                ENVIRONMENT, "TRIES - self._state.step_count", "TRIES - self._tries"
            ),
        ),
    ),
    Broken(
        "reset keeps the count",
        "contract.step_count",
        "after reset()",
        several(
            replace(
                ENVIRONMENT,
                "seed=seed)\n",
                "seed=seed, step_count=self._state.step_count)\n",
            ),
            replace(ENVIRONMENT, "TRIES - self._state.step_count", "TRIES - 1"),
        ),
    ),
    Broken(
        "reward is no number",
        "contract.reward",
        "the reward of step 1 is nan",
        replace(ENVIRONMENT, "else 0.0,", 'else float("nan"),'),
    ),
    Broken(
        "reward out of the manifest's range",
        "contract.reward",
        "is -5.0, the manifest's range is [0, 1]",
        several(
            replace(ENVIRONMENT, "else 0.0,", "else -5.0,"),
            append(
                "openenv.yaml",
                "validation:\n  reward: {floor_margin: 0.1}\n  types: {tags: [demo]}\n"
                "  resources:\n"
                "    {cpu: 1, memory_mb: 9, disk_mb: 9, episode_timeout_s: 9}\n",
            ),
        ),
    ),
    Broken(
        "seed is ignored",
        "contract.seed",
        "two episodes of seed 7 with the same actions differ: the field tries_left",
        replace(
            ENVIRONMENT,
            "tries_left=tries_left",
            "tries_left=random.SystemRandom().getrandbits(60)",
        ),
    ),
    Broken(
        "goes on when it is over",
        "contract.done",
        "goes on with done=False",
        several(
            replace(
                ENVIRONMENT, "if self._over:", "if self._over and not self._hidden:"
            ),
            replace(ENVIRONMENT, "tries_left = TRIES -", "tries_left = abs(TRIES -"),
            replace(
                ENVIRONMENT, "- self._state.step_count\n", "- self._state.step_count)\n"
            ),
        ),
    ),
    Broken(
        "no episode ends",
        "contract.done",
        "no episode ended within 200 random steps",
        several(
            replace(ENVIRONMENT, "self._over = hint", "self._over = False  # hint"),
            replace(ENVIRONMENT, "tries_left = TRIES - self", "tries_left = 1  # self"),
        ),
    ),
    Broken(
        "sessions share the hidden number",
        "contract.sessions",
        "plays differently while another one plays beside it",
        replace(ENVIRONMENT, "self._hidden", "type(self)._hidden", count=9),
    ),
    Broken(
        "client loses the reward",
        "contract.client",
        "the client tells None",
        append(
            CLIENT,
            "\n    def _parse_result(self, payload):\n"
            "        result = super()._parse_result(payload)\n"
            "        result.reward = None\n"
            "        return result\n",
        ),
    ),
    Broken(
        "client's hook raises",
        "contract.client",
        "AttributeError: 'MyAction' object has no attribute 'message'",
        append(
            CLIENT,
            "\n    def _step_payload(self, action):\n"
            "        return {'guess': action.message}\n",
        ),
    ),
    Broken(
        "tool draws without the seed",
        "contract.seed",
        "differ: the field result of step 1",
        replace(
            ENVIRONMENT,
            "tries_left=self._tries_left)",
            "tries_left=random.SystemRandom().getrandbits(60))",
        ),
        "mcp",
    ),
    Broken(
        "tools of two sessions share the hidden number",
        "contract.sessions",
        "plays differently while another one plays beside it",
        replace(ENVIRONMENT, "self._hidden", "type(self)._hidden", count=9),
        "mcp",
    ),
    Broken(
        "tools go on when it is over",
        "contract.done",
        "goes on with done=False",
        replace(
            ENVIRONMENT,
            "        if self._is_over():\n",
            "        if self._is_over():\n            self._tries_left = TRIES\n"
            "        if self._won:\n",
        ),
        "mcp",
    ),
    Broken(
        "hook of a tool client raises",
        "contract.client",
        "AttributeError: 'CallToolAction' object has no attribute 'number'",
        append(
            CLIENT,
            "\n    def _step_payload(self, action):\n"
            "        return {'number': action.number}\n",
        ),
        "mcp",
    ),
)

HANGING = (
    Broken(
        "app hangs",
        "app.import",
        "not done within",
        replace(APP, "\n\ndef main", "\nimport time\ntime.sleep(900)\n\ndef main"),
    ),
    Broken(
        "step hangs",
        "contract.step",
        "not done within",
        replace(ENVIRONMENT, STEP, "        import time\n\n        time.sleep(900)\n"),
    ),
)


def _asynchronous(folder):
    path = folder / ENVIRONMENT
    text = path.read_text(encoding="utf-8")
    text += (
        "\n    async def step_async(self, action, timeout_s=None, **kwargs):\n"
        "        return self.step(action, timeout_s=timeout_s, **kwargs)\n"
    )
    path.write_text(text, encoding="utf-8")


def _one_session(folder):
    replace(ENVIRONMENT, "SESSIONS = True", "SESSIONS = False")(folder)
    replace(APP, "MAX_CONCURRENT_ENVS = 64", "MAX_CONCURRENT_ENVS = 1")(folder)
    replace(ENVIRONMENT, "self._hidden", "type(self)._hidden", count=9)(folder)


def _dicts(folder):
    """Actions and observations are dicts."""
    write(
        ENVIRONMENT,
        "from openenv.core.env_server import Environment, State\n\n\n"
        "class Echo(Environment):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self._state = State()\n\n"
        "    def reset(self, seed=None, episode_id=None, **kwargs):\n"
        "        self._state = State(episode_id=episode_id)\n"
        "        return {'heard': None, 'done': False, 'reward': None}\n\n"
        "    def step(self, action, timeout_s=None, **kwargs):\n"
        "        self._state.step_count += 1\n"
        "        done = self._state.step_count >= 3\n"
        "        return {'heard': action, 'done': done, 'reward': 0.0}\n\n"
        "    @property\n"
        "    def state(self):\n"
        "        return self._state\n",
    )(folder)
    write(
        APP,
        "from my_env.server.environment import Echo\n"
        "from openenv.core.env_server import create_app, serve\n\n"
        "app = create_app(Echo, dict, dict)\n\n\n"
        "def main():\n"
        "    serve(app)\n",
    )(folder)
    write(
        CLIENT,
        "from openenv.core.generic_client import GenericEnvClient\n\n\n"
        "class MyEnv(GenericEnvClient):\n"
        "    pass\n",
    )(folder)
    write("__init__.py", "")(folder)


def _upstreams_shape(folder):
    """Relative imports, an app that is run from its folder, hooks, a shell command."""
    for name in (CLIENT, "__init__.py"):
        path = folder / name
        path.write_text(
            path.read_text(encoding="utf-8").replace("from my_env.", "from .")
        )
    append(
        CLIENT,
        "\n    def _step_payload(self, action):\n"
        "        return {'guess': action.guess}\n",
    )(folder)
    replace(ENVIRONMENT, "from my_env.models", "from models")(folder)
    replace(APP, "from my_env.models", "from models")(folder)
    replace(APP, "from my_env.server.environment", "from .environment")(folder)
    path = folder / DOCKERFILE
    path.write_text(
        re.sub(
            r"\nCMD .*",
            '\nCMD ["sh", "-c", "cd /app/env && uvicorn server.app:app '
            '--host 0.0.0.0 --port 8000"]',
            path.read_text(),
        )
    )
    (folder / DOCKERFILE).rename(folder / "Dockerfile")


def _one_tool_more(folder):
    """A tool whose calls cannot be drawn, beside one whose calls can."""
    tool = (
        "        @server.tool\n"
        '        async def name(text: Annotated[str, Field(pattern="^x+$")]) -> str:\n'
        "            return text\n\n"
    )
    replace(ENVIRONMENT, "        return server\n", f"{tool}        return server\n")(
        folder
    )


GOOD = {
    "typed": (Template.TYPED, lambda _: None),
    "msgspec": (Template.MSGSPEC, lambda _: None),
    "mcp": (Template.MCP, lambda _: None),
    "one tool more": (Template.MCP, _one_tool_more),
    "asynchronous": (Template.TYPED, _asynchronous),
    "one session, shared state": (Template.TYPED, _one_session),
    "dicts": (Template.TYPED, _dicts),
    "upstream's shape": (Template.TYPED, _upstreams_shape),
}


def make_good(shape: str, parent: Path) -> Path:
    template, edit = GOOD[shape]
    create_package(NAME, parent, template)
    edit(parent / NAME)
    return parent / NAME
