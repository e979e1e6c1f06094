"""docs/deviations.md is true: its tests exist, and no recorded row is missing."""

from __future__ import annotations

import re

import pytest
from tests.conformance.golden.transcripts import deviations
from tests.support.processes import ROOT

ROW = re.compile(r"^\| (\d+) \|(.*)\|$", re.MULTILINE)
NAMED_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
SHORT_FOLDERS = {"server", "client", "packaging"}
DOCUMENT = (ROOT / "docs" / "deviations.md").read_text()


@pytest.mark.parametrize(("path", "name"), NAMED_TEST.findall(DOCUMENT))
def test_a_test_that_the_document_names_exists(path: str, name: str):
    short = path.split("/", maxsplit=1)[0] in SHORT_FOLDERS
    file = ROOT / "tests" / ("integration" if short else "") / path

    assert f"def {name}(" in file.read_text()


def test_every_row_is_there_once_and_in_order():
    assert [int(number) for number, _ in ROW.findall(DOCUMENT)] == [*range(1, 33)]


def test_the_rows_marked_golden_are_those_with_recorded_deviations():
    marked = {int(number) for number, row in ROW.findall(DOCUMENT) if "golden" in row}

    assert marked == {deviation.row for deviation in deviations().values()}
