"""The replayer is right when upstream's own server gives the recorded answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.conformance.golden.compare import comparable, like
from tests.conformance.golden.transcripts import Transcript, in_scope

if TYPE_CHECKING:
    from tests.support.golden_servers import GoldenServers


@pytest.mark.parametrize("transcript", in_scope(), ids=str)
def test_upstream_still_gives_the_recorded_answer(
    transcript: Transcript, upstream_servers: GoldenServers
):
    seen = upstream_servers.replayer(transcript.app).play(transcript)

    recorded = transcript.answer
    assert comparable(recorded) == comparable(like(recorded, seen))
