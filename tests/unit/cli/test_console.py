"""What others wrote moves no cursor."""

from __future__ import annotations

import pytest

from openenv.cli._console import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[91malas\x1b[0m", "alas"),
        ("\x9b1;31malas", "alas"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x1b(Bb\x1bMc", "abc"),
        ("50 %\r100 %\x08\x00", "50 %100 %"),
        ("one\n\ttwo \N{HIRAGANA LETTER A}", "one\n\ttwo \N{HIRAGANA LETTER A}"),
        ("\x1b]no end", "no end"),
    ],
)
def test_control_sequences_are_taken_out(text, shown):
    assert shown == plain(text)
