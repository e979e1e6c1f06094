"""The limit of open files, changed in children only."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("resource", reason="limits of open files are POSIX")


def run_limited(soft, hard, sessions):
    script = f"""
        import resource
        from openenv.rollout.limits import ensure_open_files
        resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
        try:
            ensure_open_files({sessions})
        except Exception as error:
            print(type(error).__name__, error)
        print(*resource.getrlimit(resource.RLIMIT_NOFILE))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_soft_limit_is_raised_to_the_hard_one():
    assert run_limited(128, 512, 10) == ["512 512"]


def test_equal_limits_are_left_alone():
    assert run_limited(512, 512, 10) == ["512 512"]


def test_too_low_a_hard_limit_names_the_number_that_is_needed():
    complaint, limits = run_limited(128, 256, 1000)

    assert complaint == (
        "TooFewOpenFiles 1000 sessions need 1064 open files, but the hard limit is 256:"
        " raise it (ulimit -Hn 1064) or use at most 192 sessions"
    )
    assert limits == "128 256"
