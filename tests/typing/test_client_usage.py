from __future__ import annotations

import re
from pathlib import Path

import pytest

mypy = pytest.importorskip("mypy.api", reason="mypy is a development dependency")

USAGE = Path(__file__).with_name("client_usage.py")
ROOT = USAGE.parents[2]


@pytest.mark.timeout(120)
def test_users_code_has_the_types_it_says_and_mistakes_are_found():
    lines = USAGE.read_text().splitlines()
    expected = {
        (number, found[1])
        for number, line in enumerate(lines, 1)
        if (found := re.search(r"# expect: ([\w-]+)", line))
    }
    output, complaint, _ = mypy.run(
        [
            "--strict",
            "--no-error-summary",
            "--config-file=",  # as a user's project without settings of its own
            f"--cache-dir={ROOT / '.mypy_cache' / 'users'}",
            str(USAGE),
        ]
    )
    found = {
        (int(line), code)
        for line, code in re.findall(r"py:(\d+): error: .*\[([\w-]+)\]", output)
    }

    assert expected == found, output + complaint
