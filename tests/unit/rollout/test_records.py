"""Records and the sums over them."""

from __future__ import annotations

import json

import msgspec

from openenv.errors import ConnectFailed, server_error
from openenv.rollout.records import EpisodeError, EpisodeRecord, Tally


def record(**changes):
    fields = {
        "episode": 0,
        "seed": 1,
        "session": 2,
        "steps": 3,
        "reward": 4.0,
        "done": True,
        "truncated": False,
        "duration_s": 0.5,
        **changes,
    }
    return EpisodeRecord(**fields)


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_sums_count_each_record_once():
    tally = Tally(planned=5)

    tally.add(record(reward=1.0))
    tally.add(record(reward=2.0, done=False, truncated=True))
    tally.add(record(done=False, error=EpisodeError("KeyError", "first")))
    tally.add(record(done=False, error=EpisodeError("KeyError", "second")))

    assert (tally.finished, tally.succeeded, tally.failed) == (4, 2, 2)
    assert (tally.not_run, tally.truncated) == (1, 1)
    assert tally.mean_reward == 1.5
    assert dict(tally.reasons) == {"KeyError": 2}
    assert tally.examples == {"KeyError": "first"}


def test_nothing_played_has_no_mean_and_no_time():
    tally = Tally(planned=1)

    assert tally.mean_reward is None
    assert tally.playing_s == 0.0


def test_clock_stands_still_after_the_end():
    tally = Tally(planned=1)
    tally.begin()
    tally.end()

    first = tally.playing_s

    assert first == tally.playing_s >= 0.0


def test_refused_sessions_are_counted_by_reason():
    tally = Tally(planned=1)

    tally.refuse(ConnectFailed("nobody there"))

    assert dict(tally.refused) == {"ConnectFailed": 1}
    assert tally.examples == {"ConnectFailed": "nobody there"}


def test_foreign_errors_tell_the_line_that_raised_them():
    error = EpisodeError.of(raised(KeyError("x")))

    assert error.type == "KeyError"
    assert error.message.startswith("'x' (test_records.py:")


def test_foreign_errors_without_text_tell_the_line_alone():
    assert EpisodeError.of(raised(ValueError())).message.startswith("(test_records.py:")


def test_our_own_errors_speak_for_themselves():
    assert EpisodeError.of(raised(ConnectFailed("no"))) == EpisodeError(
        "ConnectFailed", "no"
    )


def test_what_does_not_fit_a_model_tells_fields_and_reasons():
    errors = [
        {"type": "missing", "loc": ["to", 0, "x"], "msg": "Field required"},
        {"type": "value_error", "loc": [], "msg": "Expected `object`"},
    ]
    data = {"message": "Invalid message", "code": "VALIDATION_ERROR", "errors": errors}

    error = EpisodeError.of(server_error(data))

    assert error == EpisodeError(
        "ValidationFailed",
        "Invalid message: to[0].x: Field required; Expected `object`",
    )


def test_what_does_not_fit_a_model_may_lack_details():
    error = server_error({"message": "Invalid message", "code": "VALIDATION_ERROR"})

    assert EpisodeError.of(error).message == str(error)


def test_json_has_an_error_only_where_there_is_one():
    plain = json.loads(msgspec.json.encode(record()))
    failed = json.loads(msgspec.json.encode(record(error=EpisodeError("E", "m"))))

    assert "error" not in plain
    assert failed == {**plain, "error": {"type": "E", "message": "m"}}
