"""One check, its verdict, and the runner of a table of checks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    # Tells of a check that begins, then of what it found.
    Listener = Callable[["str | Finding"], None]

ContextT = TypeVar("ContextT")


class Verdict(StrEnum):
    """What a check says."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: why it says so, and how to mend it."""

    check: str
    verdict: Verdict
    why: str = ""
    mend: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Finding:
        """Make a finding of its fields."""
        return cls(**{**fields, "verdict": Verdict(fields["verdict"])})


class Fault(Exception):  # noqa: N818 - what was found, not an error of ours
    """Raised by a check that found something.

    Args:
        why: what is wrong, and where.
        mend: what to do.
        verdict: FAIL, or WARN where the package works all the same.
    """

    def __init__(self, why: str, mend: str, verdict: Verdict = Verdict.FAIL) -> None:
        super().__init__(why)
        self.why = why
        self.mend = mend
        self.verdict = verdict


class NotApplicable(Exception):  # noqa: N818 - as above
    """Raised by a check that has nothing to look at.

    Args:
        why: what there is not.
        blocks: whether the checks that need this one cannot be run either.
    """

    def __init__(self, why: str, *, blocks: bool = False) -> None:
        super().__init__(why)
        self.blocks = blocks


@dataclass(frozen=True, slots=True)
class Check(Generic[ContextT]):
    """A check: its id, and the function that raises `Fault` or returns.

    It is skipped where one of `needs` did not pass, so that one fault is told once.
    """

    id: str
    run: Callable[[ContextT], None]
    needs: tuple[str, ...] = ()


def run_checks(
    checks: Sequence[Check[ContextT]],
    context: ContextT,
    listener: Listener,
    passed: Iterable[str] = (),
) -> set[str]:
    """Run a table from the top.

    Args:
        checks: the table.
        context: what each check looks at.
        listener: called with an id when the check begins, then with its finding.
        passed: ids of other tables' checks that passed.

    Returns:
        The ids of all checks that others may build on, `passed` among them.
    """
    good = set(passed)
    for check in checks:
        listener(check.id)
        listener(_run_one(check, context, good))
    return good


def _run_one(check: Check[ContextT], context: ContextT, good: set[str]) -> Finding:
    for needed in check.needs:
        if needed not in good:
            return Finding(check.id, Verdict.SKIP, f"needs {needed}")
    finding, holds = Finding(check.id, Verdict.PASS), True
    try:
        check.run(context)
    except Fault as fault:
        finding = Finding(check.id, fault.verdict, fault.why, fault.mend)
        holds = fault.verdict is Verdict.WARN
    except NotApplicable as reason:
        finding = Finding(check.id, Verdict.SKIP, str(reason))
        holds = not reason.blocks
    if holds:
        good.add(check.id)
    return finding
