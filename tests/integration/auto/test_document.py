"""Every program of docs/auto.md runs as it stands there."""

from __future__ import annotations

from tests.integration.first_light.documents import Document, run

AUTO = Document("docs/auto.md")


def test_each_program_plays_a_step_or_resets(packages, server):
    printed = [int(run(program, packages, server)) for program in AUTO.programs]
    after_a_step, after_reset, of_dicts = printed

    assert after_reset - 1 == after_a_step == of_dicts
