"""The record of the Autobahn suite is complete, without a failure, and is compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.autobahn.judge import (
    BINARY,
    QUICK,
    Verdict,
    differing,
    read_record,
    selected,
    write_record,
)

HERE = Path(__file__).resolve().parent
OK = Verdict("OK", "OK")


@pytest.mark.parametrize("side", ["client", "server", "endpoint"])
def test_no_recorded_case_has_failed(side: str):
    recorded = read_record(HERE / "verdicts" / f"{side}.json")

    failed = [case for case, verdict in recorded.items() if not verdict.passed]

    assert [] == failed


def test_record_has_every_case_of_groups_1_to_11():
    client = read_record(HERE / "verdicts" / "client.json")
    server = read_record(HERE / "verdicts" / "server.json")
    endpoint = read_record(HERE / "verdicts" / "endpoint.json")

    groups = {int(case.split(".")[0]) for case in client}
    # The suite has no group 8 and 11.
    assert {1, 2, 3, 4, 5, 6, 7, 9, 10} == groups
    assert 301 == len(client)
    assert client.keys() == server.keys()
    assert client.keys() - selected(client, BINARY).keys() == endpoint.keys()


@pytest.mark.parametrize("side", ["client", "server", "endpoint"])
def test_every_verdict_that_is_not_ok_is_argued(side: str):
    recorded = read_record(HERE / "verdicts" / f"{side}.json")
    readme = (HERE / "README.md").read_text()

    silent = [
        case
        for case, verdict in recorded.items()
        if verdict != OK and f"\n| {case} |" not in readme
    ]

    assert [] == silent


def test_pattern_selects_its_group_and_no_longer_number():
    verdicts = {"1.1.1": OK, "10.1.1": OK, "6.4.1": OK, "6.21.1": OK, "7.1.1": OK}

    assert ["1.1.1", "6.4.1", "7.1.1"] == list(selected(verdicts, QUICK))


def test_changed_missing_and_new_cases_differ_in_the_order_of_their_numbers():
    recorded = {"2.10": OK, "2.9": OK, "3.1": OK, "4.1": OK}
    seen = {"2.10": OK._replace(close="FAILED"), "3.1": OK, "4.1": OK, "2.11": OK}

    assert ["2.9", "2.10", "2.11"] == differing(recorded, seen)


@pytest.mark.parametrize("word", ["FAILED", "UNCLEAN", "WRONG CODE", "UNIMPLEMENTED"])
def test_only_the_suites_good_words_pass(word: str):
    assert not Verdict(word, "OK").passed
    assert not Verdict("OK", word).passed


def test_record_is_read_as_it_was_written(tmp_path: Path):
    verdicts = {"2.10": OK, "2.9": Verdict("NON-STRICT", "OK")}

    write_record(tmp_path / "side.json", verdicts)

    assert verdicts == read_record(tmp_path / "side.json")
    assert 4 == len((tmp_path / "side.json").read_text().splitlines())
