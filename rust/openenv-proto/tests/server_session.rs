//! The server machine: what is regular, each state by each event, pausing, idleness.

extern crate alloc;

use alloc::collections::VecDeque;

use openenv_proto::{Admit, Incoming, Op, ServerLimits, ServerSession, classify};
use proptest::prelude::*;

#[test]
fn regular_is_upstreams_exact_shape() {
    let object = Some(r#"{"a":1}"#);
    for (text, op, data) in [
        (r#"{"type":"step","data":{"a":1}}"#, Op::Step, object),
        (r#"{"data":{"a":1},"type":"step"}"#, Op::Step, object),
        (r#"{"type":"mcp","data":{"a":1}}"#, Op::Mcp, object),
        (r#"{"type":"reset","data":{"a":1}}"#, Op::Reset, object),
        (r#"{"type":"reset"}"#, Op::Reset, None),
        (r#"{"type":"state"}"#, Op::State, None),
        (r#" { "type" : "clos\u0065" } "#, Op::Close, None),
    ] {
        let expected = Incoming::Regular { op, data: data.map(str::as_bytes) };

        assert_eq!(expected, classify(text.as_bytes()), "{text}");
    }
}

#[test]
fn everything_else_is_irregular() {
    for text in [
        "",
        "{",
        "5",
        "[1,2]",
        "null",
        r#""reset""#,
        "{}",
        r#"{"type":7}"#,
        r#"{"type":"observation","data":{}}"#,
        r#"{"type":"Step","data":{}}"#,
        r#"{"type":"step"}"#,
        r#"{"type":"step","data":[]}"#,
        r#"{"type":"step","data":null}"#,
        r#"{"type":"mcp"}"#,
        r#"{"type":"mcp","data":"{}"}"#,
        r#"{"type":"reset","data":null}"#,
        r#"{"type":"reset","data":1}"#,
        r#"{"type":"state","data":{}}"#,
        r#"{"type":"close","data":{}}"#,
        r#"{"type":"state","id":7}"#,
        r#"{"type":"state","ext":{}}"#,
        r#"{"type":"state","type":"state"}"#,
        r#"{"type":"step","data":{},"data":{}}"#,
        r#"{"type":"step","data":{"a":NaN}}"#,
        r#"{"type":"step","data":{"a":"\ud800"}}"#,
    ] {
        assert_eq!(Incoming::Irregular, classify(text.as_bytes()), "{text}");
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Executing,
    ExecutingAndWaiting,
    Draining,
    Closed,
}

const STATES: [State; 5] =
    [State::Idle, State::Executing, State::ExecutingAndWaiting, State::Draining, State::Closed];

fn limits(max_pipelined: usize, max_pipelined_bytes: usize) -> ServerLimits {
    let mut limits = ServerLimits::default();
    limits.max_pipelined = max_pipelined;
    limits.max_pipelined_bytes = max_pipelined_bytes;
    limits
}

/// A session made at 1 whose last event was at 1 too.
fn build(state: State) -> ServerSession {
    let mut session = ServerSession::new(limits(2, 100), 1);
    if !matches!(state, State::Idle | State::Closed) {
        session.admit(b"a".to_vec(), 1);
    }
    if matches!(state, State::ExecutingAndWaiting | State::Draining) {
        session.admit(b"b".to_vec(), 1);
    }
    if matches!(state, State::Draining | State::Closed) {
        session.closing();
    }
    session
}

/// What a session shows of itself: busy, closing, waiting, last activity.
fn shown(session: &ServerSession) -> (bool, bool, usize, u64) {
    (session.is_busy(), session.is_closing(), session.waiting(), session.last_activity_ns())
}

#[test]
fn each_state_shows_itself() {
    let expected = [
        (false, false, 0, 1),
        (true, false, 0, 1),
        (true, false, 1, 1),
        (true, true, 0, 1),
        (false, true, 0, 1),
    ];
    for (state, expected) in STATES.into_iter().zip(expected) {
        assert_eq!(expected, shown(&build(state)), "{state:?}");
    }
}

#[test]
fn admit_in_each_state() {
    let expected = [
        (Admit::Execute(b"c".to_vec()), (true, false, 0, 5)),
        (Admit::Queued, (true, false, 1, 5)),
        (Admit::Pause, (true, false, 2, 5)),
        (Admit::Ignored, (true, true, 0, 1)),
        (Admit::Ignored, (false, true, 0, 1)),
    ];
    for (state, (expected, then)) in STATES.into_iter().zip(expected) {
        let mut session = build(state);

        assert_eq!(expected, session.admit(b"c".to_vec(), 5), "{state:?}");
        assert_eq!(then, shown(&session), "{state:?}");
    }
}

#[test]
fn finished_in_each_state() {
    let expected = [
        (None, (false, false, 0, 1)),
        (None, (false, false, 0, 5)),
        (Some(b"b".to_vec()), (true, false, 0, 5)),
        (None, (false, true, 0, 5)),
        (None, (false, true, 0, 1)),
    ];
    for (state, (expected, then)) in STATES.into_iter().zip(expected) {
        let mut session = build(state);

        assert_eq!(expected, session.finished(5), "{state:?}");
        assert_eq!(then, shown(&session), "{state:?}");
    }
}

#[test]
fn closing_in_each_state() {
    let expected = [
        (false, true, 0, 1),
        (true, true, 0, 1),
        (true, true, 0, 1),
        (true, true, 0, 1),
        (false, true, 0, 1),
    ];
    for (state, then) in STATES.into_iter().zip(expected) {
        let mut session = build(state);
        session.closing();

        assert_eq!(then, shown(&session), "{state:?}");
    }
}

#[test]
fn reading_pauses_at_the_limit_and_resumes_at_half() {
    let mut session = ServerSession::new(limits(4, 1000), 0);
    session.admit(vec![], 0);
    let outcomes: Vec<Admit> = (0..5).map(|_| session.admit(vec![0], 0)).collect();

    assert_eq!(
        [Admit::Queued, Admit::Queued, Admit::Queued, Admit::Pause, Admit::Pause],
        *outcomes
    );
    let mut resumes = vec![];
    while session.finished(0).is_some() {
        resumes.push((session.waiting(), session.should_pause(), session.should_resume()));
    }
    let expected =
        [(4, true, false), (3, false, false), (2, false, true), (1, false, true), (0, false, true)];
    assert_eq!(expected, *resumes);
}

#[test]
fn reading_pauses_at_the_limit_of_bytes_too() {
    let mut session = ServerSession::new(limits(100, 10), 0);
    session.admit(vec![0; 1000], 0);

    assert_eq!(Admit::Queued, session.admit(vec![0; 9], 0));
    assert_eq!(Admit::Pause, session.admit(vec![0; 1], 0));
    assert_eq!(Some(vec![0; 9]), session.finished(0));
    assert!(session.should_resume());
}

#[test]
fn a_busy_session_is_never_idle() {
    let mut session = ServerSession::new(ServerLimits::default(), 100);
    assert!(!session.expired(109, 10));
    assert!(session.expired(110, 10));
    assert_eq!(Some(110), session.expires_at(10));

    session.admit(vec![], 105);
    assert!(!session.expired(u64::MAX, 10));
    assert_eq!(None, session.expires_at(10));

    session.finished(1000);
    assert!(!session.expired(1009, 10));
    assert!(session.expired(1010, 10));
    assert_eq!(Some(u64::MAX), session.expires_at(u64::MAX));
}

#[test]
fn a_clock_that_steps_back_does_not_age_a_session() {
    let mut session = ServerSession::new(ServerLimits::default(), 100);
    session.admit(vec![], 50);
    session.finished(60);

    assert_eq!(100, session.last_activity_ns());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_execute_one_at_a_time_in_the_order_of_arrival(
        arrivals in prop::collection::vec(any::<bool>(), 0..60),
        max_pipelined in 0_usize..6,
    ) {
        let mut session = ServerSession::new(limits(max_pipelined, 1 << 20), 0);
        let mut arrived = VecDeque::new();
        let mut executing = None;
        for (number, arrives) in arrivals.into_iter().enumerate() {
            let message = number.to_string().into_bytes();
            if arrives {
                match session.admit(message.clone(), 0) {
                    Admit::Execute(given) => {
                        prop_assert_eq!(None, executing.replace(given.clone()));
                        prop_assert_eq!(message, given);
                    }
                    Admit::Ignored => prop_assert!(false, "nothing closes here"),
                    Admit::Queued | Admit::Pause => arrived.push_back(message),
                }
            } else if executing.is_some() {
                executing = session.finished(0);
                prop_assert_eq!(arrived.pop_front(), executing.clone());
            }
            prop_assert_eq!(executing.is_some(), session.is_busy());
            prop_assert_eq!(arrived.len(), session.waiting());
            prop_assert_eq!(arrived.len() >= max_pipelined, session.should_pause());
        }
    }
}
