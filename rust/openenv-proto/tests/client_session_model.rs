//! Any order of events gives what a plain list of requests with a note on each gives.
#![expect(clippy::indexing_slicing, reason = "the oracle may panic")]

extern crate alloc;

use alloc::collections::VecDeque;

use openenv_proto::{Answer, ClientLimits, ClientSession, Op, RequestId, SessionError};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Event {
    Abandon(prop::sample::Index),
    Answer,
    Expire { now_ns: u64 },
    FailAll,
    NextFrame,
    Submit { op: Op, deadline_ns: Option<u64> },
}

fn event() -> impl Strategy<Value = Event> {
    let op = prop::sample::select(vec![Op::Mcp, Op::Reset, Op::State, Op::Step]);
    prop_oneof![
        8 => (op, prop::option::of(0_u64..100))
            .prop_map(|(op, deadline_ns)| Event::Submit { op, deadline_ns }),
        6 => Just(Event::Answer),
        6 => Just(Event::NextFrame),
        4 => any::<prop::sample::Index>().prop_map(Event::Abandon),
        3 => (0_u64..100).prop_map(|now_ns| Event::Expire { now_ns }),
        1 => Just(Event::FailAll),
    ]
}

/// One submitted request, in the oracle's list from submission to its answer.
#[derive(Clone, Debug)]
struct Noted {
    number: usize,
    op: Op,
    deadline_ns: Option<u64>,
    sent: bool,
    waited_for: bool,
}

/// The oracle: requests in the order of submission. Those sent stand first; there is at most one.
#[derive(Debug, Default)]
struct Model {
    requests: VecDeque<Noted>,
    ids: Vec<RequestId>,
    closed: bool,
}

const LIMIT: usize = 4;

impl Model {
    fn in_flight(&self) -> bool {
        self.requests.front().is_some_and(|first| first.sent)
    }

    fn queued(&self) -> usize {
        self.requests.iter().filter(|noted| !noted.sent).count()
    }

    fn next_deadline(&self) -> Option<u64> {
        let waited_for = self.requests.iter().filter(|noted| noted.waited_for);
        waited_for.filter_map(|noted| noted.deadline_ns).min()
    }

    /// The caller of `number` gives up.
    fn give_up(&mut self, number: usize) -> bool {
        let Some(place) =
            self.requests.iter().position(|noted| noted.number == number && noted.waited_for)
        else {
            return false;
        };
        if self.requests[place].sent {
            self.requests[place].waited_for = false;
        } else {
            self.requests.remove(place);
        }
        true
    }

    fn submit(&mut self, op: Op, deadline_ns: Option<u64>) -> Result<bool, SessionError> {
        if self.closed {
            return Err(SessionError::SessionClosed);
        }
        let sent = self.requests.is_empty();
        if !sent && self.queued() >= LIMIT {
            return Err(SessionError::QueueFull { limit: LIMIT });
        }
        let number = self.ids.len();
        self.requests.push_back(Noted { number, op, deadline_ns, sent, waited_for: true });
        Ok(sent)
    }

    fn answer(&mut self) -> Result<Answer<usize>, SessionError> {
        if self.closed {
            return Err(SessionError::SessionClosed);
        }
        if !self.in_flight() {
            return Err(SessionError::UnsolicitedAnswer);
        }
        match self.requests.pop_front() {
            None => Err(SessionError::UnsolicitedAnswer),
            Some(Noted { number, op, waited_for: true, .. }) => Ok(Answer::Deliver(number, op)),
            Some(Noted { op, .. }) => Ok(Answer::Late(op)),
        }
    }

    fn next_frame(&mut self) -> Option<usize> {
        let first = self.requests.front_mut().filter(|first| !first.sent)?;
        first.sent = true;
        Some(first.number)
    }

    fn expire(&mut self, now_ns: u64) -> Vec<(usize, Op)> {
        let is_due = |noted: &&Noted| {
            noted.waited_for && noted.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns)
        };
        let due: Vec<(usize, Op)> =
            self.requests.iter().filter(is_due).map(|noted| (noted.number, noted.op)).collect();
        for (number, _) in &due {
            self.give_up(*number);
        }
        due
    }

    fn fail_all(&mut self) -> Vec<(usize, Op)> {
        self.closed = true;
        let waited_for = self.requests.drain(..).filter(|noted| noted.waited_for);
        waited_for.map(|noted| (noted.number, noted.op)).collect()
    }
}

fn frame(number: usize) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Does `event` to both and compares what comes out.
fn step(
    session: &mut ClientSession<usize>,
    model: &mut Model,
    event: &Event,
) -> Result<(), TestCaseError> {
    match event {
        Event::Abandon(which) => {
            if !model.ids.is_empty() {
                let number = which.index(model.ids.len());
                let expected = model.give_up(number).then_some(number);
                prop_assert_eq!(expected, session.abandon(model.ids[number]));
            }
        }
        Event::Answer => prop_assert_eq!(model.answer(), session.answer()),
        Event::Expire { now_ns } => {
            let mut expired = vec![];
            session.expire(*now_ns, &mut expired);
            prop_assert_eq!(model.expire(*now_ns), expired);
        }
        Event::FailAll => prop_assert_eq!(model.fail_all(), session.fail_all()),
        Event::NextFrame => prop_assert_eq!(model.next_frame().map(frame), session.next_frame()),
        Event::Submit { op, deadline_ns } => {
            let number = model.ids.len();
            let expected = model.submit(*op, *deadline_ns);
            let taken = session.submit(*op, frame(number), *deadline_ns, number);
            model.ids.extend(taken.as_ref().ok().map(|taken| taken.0));
            let expected = expected.map(|sent| sent.then(|| frame(number)));
            prop_assert_eq!(expected, taken.map(|taken| taken.1));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_order_of_events_delivers_to_a_wrong_request(
        events in prop::collection::vec(event(), 0..60),
    ) {
        let mut limits = ClientLimits::default();
        limits.max_queued_requests = LIMIT;
        let mut session = ClientSession::new(limits);
        let mut model = Model::default();
        for event in &events {
            step(&mut session, &mut model, event)?;

            prop_assert_eq!(model.next_deadline(), session.next_deadline());
            prop_assert_eq!(model.requests.is_empty(), session.is_idle());
            let owed = usize::from(model.in_flight() && !model.requests[0].waited_for);
            prop_assert_eq!(owed, session.owed());
        }
    }
}
