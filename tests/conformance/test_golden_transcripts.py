"""Our server gives upstream's recorded answers, or the deviation written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.conformance.golden.compare import comparable, like
from tests.conformance.golden.transcripts import (
    Transcript,
    deviations,
    in_scope,
    rules,
    transcripts,
)

if TYPE_CHECKING:
    from tests.support.golden_servers import GoldenServers

DEVIATION_ROWS = range(1, 32)


@pytest.mark.parametrize("transcript", in_scope(), ids=str)
def test_our_answer_is_upstreams_or_the_written_deviation(
    transcript: Transcript, golden_servers: GoldenServers
):
    seen = golden_servers.replayer(transcript.app).play(transcript)

    expected = transcript.answer
    if transcript.name in deviations():
        expected = deviations()[transcript.name].expected(expected)
    assert comparable(expected) == comparable(like(expected, seen))


@pytest.mark.parametrize("name", sorted(deviations()))
def test_a_deviation_names_a_replayed_transcript_and_differs_from_it(name: str):
    deviation = deviations()[name]
    recorded = transcripts()[name].answer

    assert name in {transcript.name for transcript in in_scope()}
    assert deviation.row in DEVIATION_ROWS
    assert comparable(recorded) != comparable(deviation.expected(recorded))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["why"])
def test_an_exchange_out_of_scope_is_counted(rule: dict):
    assert rule["count"] == len(rule["claims"])


def test_every_recorded_exchange_is_replayed_or_owned_by_a_rule():
    claimed = sum(rule["count"] for rule in rules())

    assert len(transcripts()) == len(in_scope()) + claimed
