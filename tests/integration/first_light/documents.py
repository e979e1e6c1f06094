"""The examples of the documents: found, written out, run.

A block whose first line is a path as a comment (`# counter_env/models.py`) is a file;
any other Python block is a program. `# in a notebook` marks a cell, whose top level may
await.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.processes import ROOT, ChildProcess

if TYPE_CHECKING:
    from pathlib import Path

SERVE = ROOT / "tests" / "integration" / "first_light" / "serve.py"
EXAMPLE_URL = "http://localhost:8000"
NOTEBOOK = "# in a notebook\n"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"# ([\w/]+\.\w+)\n")

# What a notebook does with a cell: compile with `await` allowed, in a running loop.
CELL = """
import ast, asyncio, inspect, sys
async def run_cell():
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    waiting = eval(compile(sys.argv[1], "<cell>", "exec", flags=flags), {})
    if inspect.isawaitable(waiting):
        await waiting
asyncio.run(run_cell())
"""


@dataclass(frozen=True)
class Document:
    """One Markdown file of the repository."""

    name: str

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """All blocks: language, text."""
        return BLOCK.findall((ROOT / self.name).read_text())

    @property
    def programs(self) -> list[str]:
        """The Python blocks that are programs, in order."""
        return [
            text
            for language, text in self.blocks
            if language == "python" and not PATH.match(text)
        ]

    @property
    def files(self) -> dict[str, str]:
        """The blocks that are files, by path."""
        found = ((PATH.match(text), text) for _, text in self.blocks)
        return {path.group(1): text for path, text in found if path}

    def write_files(self, folder: Path) -> None:
        """Write the files below a folder; a `server` folder becomes a package."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if path.parent.name == "server":
                (path.parent / "__init__.py").touch()


def serve(application: str, folder: Path) -> ChildProcess:
    """Serve `module:attribute` of a folder on a free port."""
    command = [sys.executable, str(SERVE), application, str(folder)]
    return ChildProcess(command)


def run(program: str, folder: Path, url: str = EXAMPLE_URL) -> str:
    """Run a program or a cell in a folder, against a URL; return what it printed."""
    code = program.replace(EXAMPLE_URL, url)
    arguments = [CELL, code] if program.startswith(NOTEBOOK) else [code]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, f"{program}\n{done.stderr}"
    return done.stdout
