"""mypy and pyright, run as a user's project runs them; what they say as values.

pyright is `basedpyright`, which brings its own node and is on PyPI; `strict` in its
configuration is pyright's own strict set of rules.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BIN = Path(sys.executable).parent
UNKNOWN = "reportUnknown"  # what hangs on another error of the line
PYRIGHT = str(BIN / "basedpyright")


class Said(NamedTuple):
    """What a checker says of one line: `words` are a rule's name, or a type."""

    file: str
    line: int
    words: str


class Report(NamedTuple):
    """The errors, and the types that `reveal_type` shows."""

    errors: set[Said]
    revealed: set[Said]


def mypy(files: list[Path]) -> Report:
    """Run mypy --strict."""
    output = _run(
        sys.executable,
        *("-m", "mypy", "--strict", "--output=json", "--config-file="),
        f"--cache-dir={ROOT / '.mypy_cache' / 'users'}",
        *map(str, files),
    )
    found = [json.loads(line) for line in output.splitlines()]
    revealed = re.compile(r'Revealed type is "(.*)"')
    return Report(
        {
            Said(Path(each["file"]).name, each["line"], each["code"])
            for each in found
            if each["severity"] == "error"
        },
        {
            Said(Path(each["file"]).name, each["line"], _short(shown.group(1)))
            for each in found
            if (shown := revealed.match(each["message"]))
        },
    )


def pyright(files: list[Path]) -> Report:
    """Run pyright with its strict rules."""
    output = _run(
        PYRIGHT,
        *("--outputjson", "--pythonpath", sys.executable),
        *("--project", str(HERE / "pyright-users.json")),
        *map(str, files),
    )
    found = json.loads(output)["generalDiagnostics"]
    revealed = re.compile(r'Type of ".*" is "(.*)"', re.DOTALL)
    errors = {
        _of_pyright(each, each.get("rule", "")) for each in found if _counts(each)
    }
    wrong = {said[:2] for said in errors if not said.words.startswith(UNKNOWN)}
    return Report(
        {
            said
            for said in errors
            if said[:2] not in wrong or not said.words.startswith(UNKNOWN)
        },
        {
            _of_pyright(each, _short(shown.group(1)))
            for each in found
            if (shown := revealed.match(each["message"]))
        },
    )


def completeness(package: str) -> dict[str, object]:
    """Ask pyright which public symbols have a known type, those of others left out.

    It takes no `--pythonpath` for this, but the first `python` there is.
    """
    output = _run(PYRIGHT, "--verifytypes", package, "--ignoreexternal", "--outputjson")
    found: dict[str, object] = json.loads(output)["typeCompleteness"]
    return found


def _run(*command: str) -> str:
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])  # noqa: TID251 - handed on
    done = subprocess.run(
        command,
        cwd=HERE,  # there is no pyproject.toml whose settings would count
        env={**os.environ, "PATH": path},  # noqa: TID251 - handed on
        capture_output=True,
        text=True,
        check=False,
        timeout=200,  # a busy machine: each takes 14 s of CPU at most
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout


def _counts(found: dict[str, str]) -> bool:
    return found["severity"] in {"error", "warning"}


def _of_pyright(found: dict[str, object], words: str) -> Said:
    start = found["range"]["start"]  # type: ignore[index]
    return Said(Path(str(found["file"])).name, start["line"] + 1, words)


def _short(shown: str) -> str:
    # mypy writes names in full: builtins.dict[builtins.str, Any].
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", shown)
