"""The recorded exchanges, which of them are replayed, and who owns the others."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent
APPS = (
    "sync1",
    "async4",
    "broken",
    "validator",
    "sync1_plainstate",
    "reap",
    "strict4",
    "wrapped",
    "needsreset",
    "mcp",
    "mcpstyle",
    "prod",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one exchange brought back. `None` means that it was not recorded."""

    received: Any
    http_status: int | None = None
    content_type: str | None = None
    close_code: int | None = None
    close_reason: str | None = None
    server_closed_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """One exchange with upstream 0.10.0, as it was recorded."""

    name: str
    app: str
    transport: str
    path: str
    method: str | None
    sent: Any
    answer: Answer

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Deviation:
    """A row of `deviations.toml`: transcripts that ours answers otherwise, and how."""

    row: int
    why: str
    transcripts: tuple[str, ...]
    answer: dict[str, Any] = field(default_factory=dict)
    reply: Any = None

    def expected(self, recorded: Answer) -> Answer:
        """Our exact answer: the recorded one with this row's changes applied."""
        fields = {name: getattr(recorded, name) for name in Answer.__slots__}
        fields |= self.answer
        if self.reply is not None:
            fields["received"] = with_reply(recorded.received, self.reply)
        return Answer(**fields)


def with_reply(received: list[Any], change: dict[str, Any]) -> list[Any]:
    """Put our replies in the place of the recorded ones, by their position."""
    replies = dict(enumerate(received)) | {int(at): text for at, text in change.items()}
    return [replies[at] for at in sorted(replies)]


@cache
def transcripts() -> dict[str, Transcript]:
    """All recorded exchanges by name, in the order of the file."""
    text = (GOLDEN / "transcripts.jsonl").read_text()
    lines = text.strip().split("\n")  # splitlines() would also cut at U+2028
    return {entry.name: entry for entry in map(parse, lines)}


def parse(line: str) -> Transcript:
    """Read one line of the recording."""
    entry = json.loads(line)
    answer = {name: entry.get(name) for name in Answer.__slots__}
    keys = ("name", "app", "transport", "path", "method", "sent")
    return Transcript(**{key: entry.get(key) for key in keys}, answer=Answer(**answer))


@cache
def out_of_scope() -> dict[str, str]:
    """The exchanges that are not replayed, with the rule that says why.

    Raises:
        AssertionError: If two rules claim one exchange.
    """
    claimed: dict[str, str] = {}
    for rule in _table("out_of_scope.toml")["rule"]:
        for name in _claims(rule):
            assert name not in claimed, f"{name}: two rules"
            claimed[name] = rule["why"]
    return claimed


def rules() -> list[dict[str, Any]]:
    """The rules of `out_of_scope.toml` with the transcripts that each claims."""
    every = _table("out_of_scope.toml")["rule"]
    return [rule | {"claims": _claims(rule)} for rule in every]


def _claims(rule: dict[str, Any]) -> list[str]:
    return [name for name, entry in transcripts().items() if _is(rule, entry)]


def _is(rule: dict[str, Any], entry: Transcript) -> bool:
    if "transports" in rule and entry.transport not in rule["transports"]:
        return False
    if "paths" in rule:
        return entry.app in APPS and entry.path in rule["paths"]
    return entry.app in rule["apps"]


def in_scope() -> list[Transcript]:
    """The exchanges that this project answers today."""
    later = out_of_scope()
    return [entry for name, entry in transcripts().items() if name not in later]


@cache
def deviations() -> dict[str, Deviation]:
    """Our own answers by transcript name.

    Raises:
        AssertionError: If two rows claim one exchange.
    """
    found: dict[str, Deviation] = {}
    for row in _table("deviations.toml").get("deviation", []):
        deviation = Deviation(**row | {"transcripts": tuple(row["transcripts"])})
        for name in deviation.transcripts:
            assert name not in found, f"{name}: two rows"
            found[name] = deviation
    return found


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((GOLDEN / name).read_text())
