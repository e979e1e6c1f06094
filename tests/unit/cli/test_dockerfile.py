"""Dockerfiles: split into instructions, and changed where it is asked."""

from __future__ import annotations

import pytest

from openenv.cli._dockerfile import Dockerfile, replace_base, set_variable

TEXT = """\
# syntax=docker/dockerfile:1
ARG BASE=python:3.11
FROM --platform=linux/amd64 ${BASE} AS build
RUN one \\
    # a comment between
    two
RUN <<END
three
END
FROM scratch
HEALTHCHECK --interval=3s \\
    CMD ["curl", "x"]
ENTRYPOINT ["python", "-m"]
cmd ["my.app", "--port", "8000"]
"""


def test_instructions_are_split_with_their_lines():
    found = Dockerfile.parse(TEXT).instructions

    assert [
        ("ARG", "BASE=python:3.11", 2, 2),
        ("FROM", "--platform=linux/amd64 ${BASE} AS build", 3, 3),
        ("RUN", "one two", 4, 6),
        ("RUN", "<<END three ;", 7, 9),
        ("FROM", "scratch", 10, 10),
        ("HEALTHCHECK", '--interval=3s CMD ["curl", "x"]', 11, 12),
        ("ENTRYPOINT", "python -m", 13, 13),
        ("CMD", "my.app --port 8000", 14, 14),
    ] == [(each.name, each.text, each.line, each.last) for each in found]


def test_a_container_runs_its_entrypoint_with_its_command():
    assert "python -m my.app --port 8000" == Dockerfile.parse(TEXT).command().text


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("FROM a\nCMD run\nCMD walk\n", "walk"),
        ("FROM a\nCMD run\nFROM b\n", None),
        ("FROM a\nENTRYPOINT run me\n", "run me"),
        ("FROM a\nCMD [broken\n", "[broken"),
        ("", None),
        ("FROM a\nRUN x \\\n", None),
    ],
)
def test_the_last_of_the_last_stage_counts(text, command):
    found = Dockerfile.parse(text).command()

    assert command == (found.text if found else None)


def test_the_first_base_is_replaced_and_keeps_its_name():
    changed = replace_base(TEXT, "mine:1").splitlines()

    assert "FROM --platform=linux/amd64 mine:1 AS build" == changed[2]
    assert TEXT.splitlines()[3:] == changed[3:]


def test_a_variable_is_set_before_the_command_and_not_in_the_health_check():
    changed = set_variable(TEXT, "WEB", "true").splitlines()

    assert "ENV WEB=true" == changed[13]
    assert 'cmd ["my.app", "--port", "8000"]' == changed[14]


def test_a_variable_is_set_at_the_end_where_nothing_is_run():
    assert "FROM a\nENV A=b\n" == set_variable("FROM a\n", "A", "b")
