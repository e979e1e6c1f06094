"""The file of records: whole lines only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from openenv.rollout.errors import InvalidRollout, OutputFailed
from openenv.rollout.records import EpisodeError, EpisodeRecord
from openenv.rollout.sinks import JsonLinesFile

RECORD = EpisodeRecord(
    episode=3,
    seed=9,
    session=1,
    steps=4,
    reward=1.5,
    done=True,
    truncated=False,
    duration_s=0.25,
)


def test_record_is_one_line_without_an_error_member(tmp_path):
    path = tmp_path / "out.jsonl"
    with JsonLinesFile(path) as sink:
        sink.write(RECORD)

    expected = {
        "episode": 3,
        "seed": 9,
        "session": 1,
        "steps": 4,
        "reward": 1.5,
        "done": True,
        "truncated": False,
        "duration_s": 0.25,
    }
    assert path.read_text().endswith("}\n")
    assert json.loads(path.read_text()) == expected


def test_failed_record_tells_type_and_message(tmp_path):
    path = tmp_path / "out.jsonl"
    error = EpisodeError("KeyError", "line\nbreak «é»")
    failed = EpisodeRecord(0, 0, 0, 0, float("nan"), False, False, 0.0, error)
    with JsonLinesFile(path) as sink:
        sink.write(failed)

    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["error"] == {
        "type": "KeyError",
        "message": "line\nbreak «é»",
    }
    assert json.loads(line)["reward"] is None


def test_existing_records_are_kept_and_a_broken_last_line_is_closed(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text('{"old":1}\n{"broken":')
    with JsonLinesFile(path) as sink:
        sink.write(RECORD)
        sink.write(RECORD)

    lines = path.read_text().splitlines()
    assert lines[:2] == ['{"old":1}', '{"broken":']
    assert [json.loads(line)["episode"] for line in lines[2:]] == [3, 3]


@pytest.mark.parametrize("where", ["missing/out.jsonl", "."])
def test_path_that_cannot_be_opened_is_the_callers_mistake(tmp_path, where):
    with pytest.raises(InvalidRollout, match="cannot write to"):
        JsonLinesFile(tmp_path / where)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_full_disk_is_an_error_that_names_the_file():
    with (
        JsonLinesFile(Path("/dev/full")) as sink,
        pytest.raises(OutputFailed, match=r"cannot write to /dev/full: No space left"),
    ):
        sink.write(RECORD)


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_half_written_line_is_cut_off_again(tmp_path):
    # A limit of file size makes the kernel take a part of the line, then refuse.
    path = tmp_path / "out.jsonl"
    script = f"""
        import resource
        from pathlib import Path
        from openenv.rollout import EpisodeRecord, JsonLinesFile, OutputFailed
        record = EpisodeRecord(1, 2, 3, 4, 5.0, True, False, 0.5)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
        with JsonLinesFile(Path({str(path)!r})) as sink:
            for _ in range(10):
                try:
                    sink.write(record)
                except OutputFailed as error:
                    print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "File too large" in done.stdout
    text = path.read_text()
    assert text.endswith("}\n")
    assert [json.loads(line)["episode"] for line in text.splitlines()] == [1, 1]
