"""What the suite's report says, without times, and how it differs from the record."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# INFORMATIONAL and NON-STRICT: RFC 6455 leaves it open.
GOOD = frozenset({"OK", "INFORMATIONAL", "NON-STRICT"})

# Compression (12, 13) is not offered.
ALL = ("*",)
QUICK = ("1.*", "2.*", "3.*", "4.*", "5.*", "6.1.*", "6.2.*", "6.3.*", "6.4.*", "7.*")
# The classic wire has no binary replies, so an echo over the endpoint has none.
BINARY = ("1.2.*", "9.2.*", "9.4.*", "9.6.*", "9.8.*")


class Verdict(NamedTuple):
    """The suite's word on one case: on the messages, and on the closing handshake."""

    behavior: str
    close: str

    @property
    def passed(self) -> bool:
        return self.behavior in GOOD and self.close in GOOD


Verdicts = dict[str, Verdict]


def read_report(folder: Path) -> Verdicts:
    """Read the suite's own summary of its one agent."""
    (cases,) = json.loads((folder / "index.json").read_text()).values()
    found = {
        case: Verdict(told["behavior"], told["behaviorClose"])
        for case, told in cases.items()
    }
    return in_order(found)


def read_record(path: Path) -> Verdicts:
    """Read the committed verdicts."""
    recorded = json.loads(path.read_text())
    return {case: Verdict(*words) for case, words in recorded.items()}


def write_record(path: Path, verdicts: Verdicts) -> None:
    """Write verdicts, a line each, so that a change is a line of a diff."""
    lines = (
        f"  {json.dumps(case)}: {json.dumps(list(verdict))}"
        for case, verdict in in_order(verdicts).items()
    )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def in_order(verdicts: Verdicts) -> Verdicts:
    """Sort by case number, 2.10 after 2.9."""
    return {case: verdicts[case] for case in sorted(verdicts, key=case_key)}


def case_key(case: str) -> tuple[int, ...]:
    return tuple(int(part) for part in case.split("."))


def selected(verdicts: Verdicts, patterns: Iterable[str]) -> Verdicts:
    """Keep the cases that one of the suite's patterns names."""
    patterns = tuple(patterns)
    return {
        case: verdict
        for case, verdict in verdicts.items()
        if any(fnmatchcase(case, pattern) for pattern in patterns)
    }


def differing(recorded: Verdicts, seen: Verdicts) -> list[str]:
    """Name the cases whose verdicts differ, or that only one of the two has."""
    cases = sorted(recorded.keys() | seen.keys(), key=case_key)
    return [case for case in cases if recorded.get(case) != seen.get(case)]
