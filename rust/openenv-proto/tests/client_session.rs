//! The client machine: each state by each event, and any order of events against an oracle.

use openenv_proto::{Answer, ClientLimits, ClientSession, Op, RequestId, SessionError};

type Session = ClientSession<&'static str>;

/// Request `a` is first and due at 10, `b` second and due at 20, `c` third without a deadline.
#[derive(Clone, Copy, Debug)]
enum State {
    Free,
    InFlight,
    InFlightAndQueued,
    Owed,
    OwedAndQueued,
    AnsweredAndQueued,
    Closed,
}

struct Built {
    session: Session,
    a: Option<RequestId>,
    b: Option<RequestId>,
}

fn build(state: State) -> Built {
    let mut limits = ClientLimits::default();
    limits.max_queued_requests = 2;
    let mut session = Session::new(limits);
    let (mut a, mut b) = (None, None);
    if !matches!(state, State::Free | State::Closed) {
        a = session.submit(Op::Reset, b"a".to_vec(), Some(10), "a").ok().map(|taken| taken.0);
    }
    if matches!(state, State::InFlightAndQueued | State::OwedAndQueued | State::AnsweredAndQueued) {
        b = session.submit(Op::Step, b"b".to_vec(), Some(20), "b").ok().map(|taken| taken.0);
    }
    match state {
        State::Owed | State::OwedAndQueued => drop(a.and_then(|id| session.abandon(id))),
        State::AnsweredAndQueued => drop(session.answer()),
        State::Closed => drop(session.fail_all()),
        State::Free | State::InFlight | State::InFlightAndQueued => {}
    }
    Built { session, a, b }
}

const STATES: [State; 7] = [
    State::Free,
    State::InFlight,
    State::InFlightAndQueued,
    State::Owed,
    State::OwedAndQueued,
    State::AnsweredAndQueued,
    State::Closed,
];

/// What a session shows of itself: owed, idle, next deadline.
fn shown(session: &Session) -> (usize, bool, Option<u64>) {
    (session.owed(), session.is_idle(), session.next_deadline())
}

#[test]
fn each_state_shows_itself() {
    let expected = [
        (0, true, None),
        (0, false, Some(10)),
        (0, false, Some(10)),
        (1, false, None),
        (1, false, Some(20)),
        (0, false, Some(20)),
        (0, true, None),
    ];
    for (state, expected) in STATES.into_iter().zip(expected) {
        assert_eq!(expected, shown(&build(state).session), "{state:?}");
    }
}

#[test]
fn submit_in_each_state() {
    let sent = Ok(Some(b"c".to_vec()));
    let queued = Ok(None);
    let expected = [
        (sent, (0, false, None)),
        (queued.clone(), (0, false, Some(10))),
        (queued.clone(), (0, false, Some(10))),
        (queued.clone(), (1, false, None)),
        (queued.clone(), (1, false, Some(20))),
        (queued, (0, false, Some(20))),
        (Err(SessionError::SessionClosed), (0, true, None)),
    ];
    for (state, (expected, then)) in STATES.into_iter().zip(expected) {
        let mut session = build(state).session;
        let outcome = session.submit(Op::Step, b"c".to_vec(), None, "c").map(|taken| taken.1);

        assert_eq!(expected, outcome, "{state:?}");
        assert_eq!(then, shown(&session), "{state:?}");
    }
}

#[test]
fn close_is_submitted_in_no_state() {
    for state in STATES {
        let Built { mut session, .. } = build(state);
        let before = shown(&session);
        let expected = match state {
            State::Closed => SessionError::SessionClosed,
            _ => SessionError::CloseSubmitted,
        };

        assert_eq!(Err(expected), session.submit(Op::Close, vec![], None, "c"), "{state:?}");
        assert_eq!(before, shown(&session), "{state:?}");
    }
}

#[test]
fn answer_in_each_state() {
    let deliver_a = Ok(Answer::Deliver("a", Op::Reset));
    let expected = [
        (Err(SessionError::UnsolicitedAnswer), (0, true, None)),
        (deliver_a, (0, true, None)),
        (Ok(Answer::Deliver("a", Op::Reset)), (0, false, Some(20))),
        (Ok(Answer::Late(Op::Reset)), (0, true, None)),
        (Ok(Answer::Late(Op::Reset)), (0, false, Some(20))),
        (Err(SessionError::UnsolicitedAnswer), (0, false, Some(20))),
        (Err(SessionError::SessionClosed), (0, true, None)),
    ];
    for (state, (expected, then)) in STATES.into_iter().zip(expected) {
        let mut session = build(state).session;

        assert_eq!(expected, session.answer(), "{state:?}");
        assert_eq!(then, shown(&session), "{state:?}");
    }
}

#[test]
fn next_frame_in_each_state() {
    for state in STATES {
        let mut session = build(state).session;
        let before = shown(&session);
        let expected = matches!(state, State::AnsweredAndQueued).then(|| b"b".to_vec());

        assert_eq!(expected, session.next_frame(), "{state:?}");
        assert_eq!(before, shown(&session), "{state:?}");
    }
}

#[test]
fn abandoning_the_first_in_each_state() {
    let expected = [
        (None, (0, true, None)),
        (Some("a"), (1, false, None)),
        (Some("a"), (1, false, Some(20))),
        (None, (1, false, None)),
        (None, (1, false, Some(20))),
        (None, (0, false, Some(20))),
        (None, (0, true, None)),
    ];
    for (state, (expected, then)) in STATES.into_iter().zip(expected) {
        let Built { mut session, a, .. } = build(state);

        assert_eq!(expected, a.and_then(|id| session.abandon(id)), "{state:?}");
        assert_eq!(then, shown(&session), "{state:?}");
    }
}

#[test]
fn abandoning_the_waiting_one_in_each_state_forgets_it() {
    for (state, then) in [
        (State::InFlightAndQueued, (0, false, Some(10))),
        (State::OwedAndQueued, (1, false, None)),
        (State::AnsweredAndQueued, (0, true, None)),
    ] {
        let Built { mut session, b, .. } = build(state);

        assert_eq!(Some("b"), session.abandon(b.unwrap()), "{state:?}");
        assert_eq!(None, session.abandon(b.unwrap()), "{state:?}");
        assert_eq!(then, shown(&session), "{state:?}");
        let _ = session.answer();
        assert_eq!(None, session.next_frame(), "{state:?}");
    }
}

#[test]
fn expiry_in_each_state() {
    let (a, b) = (("a", Op::Reset), ("b", Op::Step));
    let expected = [
        (vec![], (0, true, None)),
        (vec![a], (1, false, None)),
        (vec![a, b], (1, false, None)),
        (vec![], (1, false, None)),
        (vec![b], (1, false, None)),
        (vec![b], (0, true, None)),
        (vec![], (0, true, None)),
    ];
    for (state, (expected, then)) in STATES.into_iter().zip(expected) {
        let mut session = build(state).session;
        let mut expired = vec![];
        session.expire(9, &mut expired);
        assert_eq!(0, expired.len(), "{state:?}: nothing is due at 9");
        session.expire(20, &mut expired);

        assert_eq!(expected, expired, "{state:?}");
        assert_eq!(then, shown(&session), "{state:?}");
    }
}

#[test]
fn failure_in_each_state_hands_back_who_waits() {
    let (a, b) = (("a", Op::Reset), ("b", Op::Step));
    let expected = [vec![], vec![a], vec![a, b], vec![], vec![b], vec![b], vec![]];
    for (state, expected) in STATES.into_iter().zip(expected) {
        let mut session = build(state).session;

        assert_eq!(expected, session.fail_all(), "{state:?}");
        assert_eq!((0, true, None), shown(&session), "{state:?}");
        assert_eq!(Err(SessionError::SessionClosed), session.answer(), "{state:?}");
        assert_eq!(0, session.fail_all().len(), "{state:?}");
    }
}

#[test]
fn an_expired_step_never_gives_its_reply_to_the_next_step() {
    let mut session = Session::new(ClientLimits::default());
    session.submit(Op::Step, b"first".to_vec(), Some(10), "first").unwrap();
    let mut expired = vec![];
    session.expire(10, &mut expired);
    assert_eq!(vec![("first", Op::Step)], expired);

    assert_eq!(None, session.submit(Op::Step, b"second".to_vec(), None, "second").unwrap().1);
    assert_eq!(Ok(Answer::Late(Op::Step)), session.answer());
    assert_eq!(Some(b"second".to_vec()), session.next_frame());
    assert_eq!(Ok(Answer::Deliver("second", Op::Step)), session.answer());
}

#[test]
fn a_request_between_answer_and_next_frame_does_not_overtake() {
    let Built { mut session, .. } = build(State::AnsweredAndQueued);

    assert_eq!(None, session.submit(Op::Step, b"c".to_vec(), None, "c").unwrap().1);
    assert_eq!(Some(b"b".to_vec()), session.next_frame());
    assert_eq!(Ok(Answer::Deliver("b", Op::Step)), session.answer());
    assert_eq!(Some(b"c".to_vec()), session.next_frame());
}

#[test]
fn a_full_queue_refuses_and_takes_again_once_there_is_room() {
    let Built { mut session, .. } = build(State::InFlightAndQueued);
    session.submit(Op::State, vec![], None, "c").unwrap();
    let full = SessionError::QueueFull { limit: 2 };

    assert_eq!(Err(full), session.submit(Op::State, vec![], None, "d"));
    session.answer().unwrap();
    session.next_frame().unwrap();
    assert_eq!(None, session.submit(Op::State, vec![], None, "d").unwrap().1);
    assert_eq!("2 requests already wait in this session", full.to_string());
}

#[test]
fn a_queue_of_none_still_sends_one_at_a_time() {
    let mut limits = ClientLimits::default();
    limits.max_queued_requests = 0;
    let mut session = Session::new(limits);

    assert!(session.submit(Op::State, vec![], None, "a").is_ok());
    let full = Err(SessionError::QueueFull { limit: 0 });
    assert_eq!(full, session.submit(Op::State, vec![], None, "b"));
}
