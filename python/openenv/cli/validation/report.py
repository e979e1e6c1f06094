"""All findings of one target, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rich.padding import Padding
from rich.text import Text

from openenv.cli.validation.checks import Finding, Verdict

if TYPE_CHECKING:
    from rich.console import Console

_STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.FAIL: "bold red",
    Verdict.SKIP: "dim",
}
_INDENT: Final = 7


@dataclass
class Report:
    """What was found; `strict` makes a warning a failure."""

    target: str
    strict: bool
    findings: list[Finding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        bad = {Verdict.FAIL, Verdict.WARN} if self.strict else {Verdict.FAIL}
        return not any(finding.verdict in bad for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {
            "target": self.target,
            "passed": self.passed,
            "strict": self.strict,
            "summary": self._counts(),
            "checks": [finding.as_dict() for finding in self.findings],
        }

    def show(self, console: Console, *, every: bool = False) -> None:
        """Print what is not in order, or every check, and the sum."""
        for finding in self.findings:
            if every or finding.verdict in (Verdict.FAIL, Verdict.WARN):
                _show_finding(finding, console)
        counts = self._counts()
        words = {"pass": "passed", "warn": "warned", "fail": "failed"}
        told = [f"{counts[key]} {word}" for key, word in words.items() if counts[key]]
        if every and counts["skip"]:
            told.append(f"{counts['skip']} not applicable")
        verdict = "valid" if self.passed else "not valid"
        line = f"{self.target} is {verdict}: {', '.join(told)}"
        console.print(line, markup=False, style="green" if self.passed else "red")

    def _counts(self) -> dict[str, int]:
        counts = Counter(finding.verdict for finding in self.findings)
        return {verdict.value: counts[verdict] for verdict in Verdict}


def _show_finding(finding: Finding, console: Console) -> None:
    head = Text(f"{finding.verdict.value:5}", style=_STYLES[finding.verdict])
    head.append(f"  {finding.check}", style="default not bold")
    console.print(head)
    if finding.why:
        _show_below(Text(finding.why), console)
    if finding.mend:
        mend = Text(f"mend: {finding.mend}", style="dim")
        _show_below(mend, console)


def _show_below(text: Text, console: Console) -> None:
    """Print indented; a terminal breaks it between words, a pipe not at all."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, _INDENT)))
    else:
        for line in text.split():
            console.print(Text(" " * _INDENT) + line, soft_wrap=True)
