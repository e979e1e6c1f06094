"""Users' code has the types it says, and its mistakes are found, by both checkers.

A line says what is expected of it: `# expect: arg-type, reportArgumentType` names the
rules of mypy and of pyright (`report…`), `# reveals: StepResult[Board]` the type that
both show. A remark alone on its line is about the next one. A line without any must be
clean.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.typing import checkers
from tests.typing.checkers import HERE, Report, Said

USAGE = sorted((HERE / "usage").glob("*.py"))
EXPECT = re.compile(r"# expect: ([\w, -]+)$")
REVEALS = re.compile(r"# reveals: (.+)$")


def _expected(checker: str) -> Report:
    report = Report(set(), set())
    for file in USAGE:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            number += line.lstrip().startswith("#")  # noqa: PLW2901 - the next line
            if found := EXPECT.search(line):
                for rule in found.group(1).split(", "):
                    if rule.startswith("report") == (checker == "pyright"):
                        report.errors.add(Said(file.name, number, rule))
            if found := REVEALS.search(line):
                report.revealed.add(Said(file.name, number, found.group(1)))
    return report


pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def running():
    """All checkers, started together: each takes a core for ten seconds or more."""
    with ThreadPoolExecutor() as pool:
        yield {
            "mypy": pool.submit(checkers.mypy, USAGE),
            "pyright": pool.submit(checkers.pyright, USAGE),
            "completeness": pool.submit(checkers.completeness, "openenv"),
        }


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_users_code_has_the_types_it_says_and_mistakes_are_found(checker, running):
    expected = _expected(checker)

    found = running[checker].result()

    assert expected.errors == found.errors
    assert expected.revealed == found.revealed


def test_each_file_has_mistakes_and_types_for_both_checkers():
    for checker in ("mypy", "pyright"):
        errors, revealed = _expected(checker)

        assert {file.name for file in USAGE} == {said.file for said in errors}
        assert len(revealed) >= 10


def test_the_type_of_every_public_name_is_known(running):
    report = running["completeness"].result()
    unknown = [
        symbol["name"]
        for symbol in report["symbols"]
        if symbol["isExported"]
        and (symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"])
    ]

    assert [] == unknown
    assert 1 == report["completenessScore"]
