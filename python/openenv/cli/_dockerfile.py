"""Read and change Dockerfiles: as much of their grammar as the commands need."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, Self

_INSTRUCTION: Final = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_HEREDOC: Final = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in capitals, its text on one line, its lines.

    The exec form of CMD and ENTRYPOINT is told as a shell would write it. `line` is
    that of its beginning, from 1; `last` that of its end.
    """

    name: str
    text: str
    line: int
    last: int


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """A Dockerfile as its instructions."""

    instructions: tuple[Instruction, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Split a Dockerfile; what is no instruction is left out."""
        return cls(tuple(_instructions(text.splitlines())))

    def of(self, name: str) -> list[Instruction]:
        """Return all instructions of a name."""
        return [each for each in self.instructions if each.name == name]

    def command(self) -> Instruction | None:
        """Return what a container runs: ENTRYPOINT and CMD of the last stage."""
        starts = [i for i, each in enumerate(self.instructions) if each.name == "FROM"]
        stage = self.instructions[starts[-1] if starts else 0 :]
        ends = {each.name: each for each in stage if each.name in ("ENTRYPOINT", "CMD")}
        entry, command = ends.get("ENTRYPOINT"), ends.get("CMD")
        if entry is None or command is None:
            return command or entry
        text = f"{entry.text} {command.text}"
        return Instruction("CMD", text, command.line, command.last)


def replace_base(text: str, image: str) -> str:
    """Put another image into the first FROM."""
    lines = text.splitlines()
    for first in Dockerfile.parse(text).of("FROM")[:1]:
        changed = first.text.replace(_image(first.text), image, 1)
        lines[first.line - 1 : first.last] = [f"FROM {changed}"]
    return "\n".join(lines) + "\n"


def set_variable(text: str, name: str, value: str) -> str:
    """Set an environment variable just before what the container runs."""
    command = Dockerfile.parse(text).command()
    lines = text.splitlines()
    place = len(lines) if command is None else command.line - 1
    lines.insert(place, f"ENV {name}={value}")
    return "\n".join(lines) + "\n"


def _image(text: str) -> str:
    return next((word for word in text.split() if not word.startswith("--")), "")


def _instructions(lines: list[str]) -> list[Instruction]:
    found, number = [], 0
    while number < len(lines):
        first = number
        parts: list[str] = []
        number = _take(lines, number, parts)
        match = _INSTRUCTION.match(" ".join(parts))
        if match:
            name, text = match.group(1).upper(), " ".join(match.group(2).split())
            found.append(Instruction(name, _plain(name, text), first + 1, number))
    return found


def _take(lines: list[str], number: int, parts: list[str]) -> int:
    """Take one instruction's lines; comments and blank lines between them go."""
    while number < len(lines):
        line = lines[number].strip()
        number += 1
        if line.startswith("#") or not line:
            if parts:
                continue
            return number
        heredoc = _HEREDOC.search(line)
        parts.append(line.removesuffix("\\").strip())
        if heredoc:
            return _take_heredoc(lines, number, heredoc.group(1), parts)
        if not line.endswith("\\"):
            return number
    return number


def _take_heredoc(lines: list[str], number: int, end: str, parts: list[str]) -> int:
    while number < len(lines) and lines[number].strip() != end:
        parts.append(f"{lines[number].strip()} ;")
        number += 1
    return number + 1


def _plain(name: str, text: str) -> str:
    if name not in ("CMD", "ENTRYPOINT") or not text.startswith("["):
        return text
    try:
        return " ".join(str(word) for word in json.loads(text))
    except ValueError:
        return text  # Docker takes it for the shell form, too
