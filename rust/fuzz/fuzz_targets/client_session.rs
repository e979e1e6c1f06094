//! Invariant: in any order of requests, answers, deadlines and closes, cut anywhere, each caller gets its own answer or one named failure, and what is sent is what a plain list of requests predicts.
//!
//! Input: deeds of two bytes, what and how much; see `Play::act`. The server is honest: it answers
//! what it has received, in order.
#![no_main]

use std::{collections::VecDeque, mem};

use libfuzzer_sys::fuzz_target;
use openenv_endpoint::{
    CLOSE_TIMEOUT_NS, ClientConfig, ClientEndpoint, ClientEvent, ClientLimits, Failure,
    KeepaliveConfig, Limits, Op, Phase, RequestId, SubmitError,
};
use openenv_fuzz::{FixedMask, pieces::cut, wire::Wire};
use openenv_ws::{Connection, Event, MessageKind, Role, ServerHandshake, Unmasked};

const OPS: [Op; 4] = [Op::Mcp, Op::Reset, Op::State, Op::Step];
const MAX_QUEUED: usize = 4;
/// A tenth of a second: the unit of deadlines and of waiting.
const TICK_NS: u64 = 100_000_000;

fuzz_target!(|deeds: &[u8]| {
    let mut play = Play::open();
    for deed in deeds.chunks_exact(2) {
        play.act(deed[0], deed[1]);
    }
    play.end();
});

/// One request in the model, from submission to its answer. Those sent stand first; there is one at
/// most.
struct Noted {
    tag: usize,
    op: Op,
    deadline_ns: Option<u64>,
    is_sent: bool,
    is_awaited: bool,
}

/// What the server has written.
enum Written {
    Answer(usize),
    Close,
    Ping,
}

struct Play {
    client: ClientEndpoint<usize>,
    server: Connection,
    wire: Wire<Written>,
    /// What the server has received and not answered.
    received: VecDeque<usize>,
    now_ns: u64,
    ids: Vec<RequestId>,
    /// The model.
    requests: VecDeque<Noted>,
    sent: Vec<String>,
    expected: Vec<ClientEvent<'static, usize>>,
    late: u64,
    phase: Phase,
    closing_at_ns: u64,
}

impl Play {
    fn open() -> Self {
        let mut session_limits = ClientLimits::default();
        session_limits.max_queued_requests = MAX_QUEUED;
        let config = ClientConfig {
            host: "host".into(),
            target: "/ws".into(),
            headers: Vec::new(),
            limits: Limits::default(),
            session_limits,
            keepalive: KeepaliveConfig::OFF,
        };
        let mut client = ClientEndpoint::new(&config, [7; 16]).unwrap();
        client.connect(TICK_NS);
        let head = mem::take(client.output());
        let request = ServerHandshake::new(Limits::default()).receive(&head).unwrap().unwrap();
        let answer = ServerHandshake::accept(&request, None, &[]).unwrap();
        let mut events = Vec::new();
        client.receive(&answer, 0, &mut FixedMask, &mut events);
        assert!(matches!(events[..], [ClientEvent::Opened { .. }]));
        Self {
            client,
            server: Connection::new(Role::Server, Limits::default()),
            wire: Wire::default(),
            received: VecDeque::new(),
            now_ns: 0,
            ids: Vec::new(),
            requests: VecDeque::new(),
            sent: Vec::new(),
            expected: Vec::new(),
            late: 0,
            phase: Phase::Open,
            closing_at_ns: 0,
        }
    }

    fn act(&mut self, what: u8, how_much: u8) {
        match what % 16 {
            0..=4 => self.submit(how_much),
            5..=7 => self.answer(),
            8..=10 => self.deliver(how_much),
            11 => self.abandon(how_much),
            12 => self.tick(how_much),
            13 => self.write_frame(MessageKind::Text, Written::Ping),
            14 => self.speak_unasked(how_much),
            _ => self.leave(how_much),
        }
        self.check();
    }

    /// Whatever happened, the end of the stream settles every request.
    fn end(mut self) {
        self.leave(2);
        assert_eq!(Phase::Closed, self.client.phase());
        assert!(self.client.cause().is_some());
        assert!(self.requests.iter().all(|noted| !noted.is_awaited));
        assert_eq!(None, self.client.next_timeout());
    }

    fn submit(&mut self, how: u8) {
        let (tag, op) = (self.ids.len(), OPS[usize::from(how % 4)]);
        let deadline_ns = (how >= 4).then(|| self.now_ns + u64::from(how / 4) * TICK_NS);
        let mut frame = Vec::new();
        let begun = self.client.begin(op, &mut frame);
        if op != Op::State {
            frame.extend_from_slice(format!("{{\"n\":{tag}}}").as_bytes());
        }
        let outcome = self.client.submit(begun, frame, deadline_ns, tag, &mut FixedMask);
        let queued = self.requests.iter().filter(|noted| !noted.is_sent).count();
        let is_sent = self.requests.is_empty();
        match outcome {
            Err(SubmitError::NotOpen) => assert_ne!(Phase::Open, self.phase),
            Err(_) => assert!(!is_sent && queued >= MAX_QUEUED, "refused without need"),
            Ok((id, frame)) => {
                assert!(is_sent || queued < MAX_QUEUED);
                assert_eq!(Phase::Open, self.phase);
                assert_eq!(is_sent, frame.is_some());
                self.ids.push(id);
                let noted = Noted { tag, op, deadline_ns, is_sent: false, is_awaited: true };
                self.requests.push_back(noted);
                self.send_next();
                self.serve(&frame.unwrap_or_default());
            }
        }
    }

    fn abandon(&mut self, which: u8) {
        let Some(tag) = usize::from(which).checked_rem(self.ids.len()) else { return };
        let place = self.requests.iter().position(|noted| noted.tag == tag && noted.is_awaited);
        let expected = place.map(|place| {
            self.give_up(place);
            tag
        });
        assert_eq!(expected, self.client.abandon(self.ids[tag]));
    }

    /// The server answers the oldest request it has.
    fn answer(&mut self) {
        if let Some(tag) = self.received.pop_front() {
            self.write_frame(MessageKind::Text, Written::Answer(tag));
        }
    }

    /// The client reads up to `count` bytes, in pieces.
    fn deliver(&mut self, count: u8) {
        let (bytes, notes) = self.wire.read(usize::from(count));
        for note in notes {
            match note {
                Written::Answer(tag) => self.expect_answer(tag),
                Written::Close => self.expect_closed(),
                Written::Ping => {}
            }
        }
        self.feed(&bytes, count);
    }

    fn tick(&mut self, how_long: u8) {
        self.now_ns += u64::from(how_long) * TICK_NS;
        match self.phase {
            Phase::Open => self.expect_expired(),
            Phase::Closing if self.closing_at_ns + CLOSE_TIMEOUT_NS <= self.now_ns => {
                self.expect_closed();
            }
            _ => {}
        }
        let mut events = Vec::new();
        self.client.tick(self.now_ns, &mut FixedMask, &mut events);
        self.compare(events);
    }

    /// The server speaks while nothing is owed or on its way: an error is its last word, anything
    /// else is a fault.
    fn speak_unasked(&mut self, how: u8) {
        if self.phase != Phase::Open || !self.wire.is_empty() || !self.requests.is_empty() {
            return;
        }
        let is_error = how.is_multiple_of(2);
        let kind = if is_error { "error" } else { "observation" };
        let text = format!(r#"{{"type":"{kind}","data":{{"message":"unasked"}}}}"#);
        let mut frame = Vec::new();
        if self
            .server
            .append(MessageKind::Text, text.as_bytes(), &mut frame, &mut Unmasked)
            .is_err()
        {
            return;
        }
        if is_error {
            self.expected.push(ClientEvent::Refused { payload: text.into_bytes().into() });
        } else {
            self.expect_closed();
        }
        self.feed(&frame, how);
    }

    fn leave(&mut self, how: u8) {
        let mut events = Vec::new();
        match how % 4 {
            0 => {
                if self.phase == Phase::Open {
                    self.expect_failed();
                    self.sent.push(r#"{"type":"close"}"#.into());
                    (self.phase, self.closing_at_ns) = (Phase::Closing, self.now_ns);
                }
                self.client.close(1000, self.now_ns, &mut FixedMask, &mut events);
            }
            1 => return self.write_frame(MessageKind::Text, Written::Close),
            2 => {
                self.expect_closed();
                self.client.eof(&mut events);
            }
            _ => {}
        }
        self.compare(events);
    }

    /// Writes to the wire, while the server may still write.
    fn write_frame(&mut self, kind: MessageKind, note: Written) {
        let mut bytes = Vec::new();
        let written = match note {
            Written::Answer(tag) => {
                self.server.append(kind, answer_of(tag).as_bytes(), &mut bytes, &mut Unmasked)
            }
            Written::Close => self.server.close(1000, "", &mut Unmasked),
            Written::Ping => self.server.ping(b"there?", &mut Unmasked),
        };
        if written.is_ok() {
            bytes.append(self.server.output());
            self.wire.write(&bytes, note);
        }
    }

    fn feed(&mut self, bytes: &[u8], seed: u8) {
        let mut events = Vec::new();
        for piece in cut(bytes, seed) {
            let mut told = Vec::new();
            self.client.receive(piece, self.now_ns, &mut FixedMask, &mut told);
            events.extend(told.into_iter().map(ClientEvent::into_owned));
        }
        self.compare(events);
    }

    /// The server reads what the client writes.
    fn serve(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while let Some(event) = self.server.receive(&mut input, &mut Unmasked).unwrap() {
            if let Event::Message { payload, .. } = event {
                let text = str::from_utf8(&payload).unwrap();
                let (expected, tag) = (self.sent.remove(0), tag_of(text));
                assert_eq!(expected.split('#').next(), Some(text));
                // `state` carries no number: the model's note has it.
                let noted = expected.split('#').nth(1).and_then(|tag| tag.parse().ok());
                self.received.extend(tag.or(noted));
            }
        }
        let output = mem::take(self.server.output());
        if !output.is_empty() {
            // The echo of the client's Close, or a pong.
            let is_closing = self.server.state() != openenv_ws::State::Open;
            self.wire.write(&output, if is_closing { Written::Close } else { Written::Ping });
        }
    }

    fn compare(&mut self, events: Vec<ClientEvent<'_, usize>>) {
        let output = mem::take(self.client.output());
        self.serve(&output);
        assert_eq!(mem::take(&mut self.expected), events);
    }

    fn check(&mut self) {
        assert_eq!(self.phase, self.client.phase());
        assert!(self.sent.is_empty(), "predicted, but not sent: {:?}", self.sent);
        assert_eq!(self.late, self.client.late_answers());
        let is_owed = |noted: &&Noted| noted.is_sent && !noted.is_awaited;
        assert_eq!(self.requests.iter().filter(is_owed).count(), self.client.owed());
        assert_eq!(self.requests.is_empty(), self.client.is_idle());
        if self.phase == Phase::Open {
            let awaited = self.requests.iter().filter(|noted| noted.is_awaited);
            let earliest_ns = awaited.filter_map(|noted| noted.deadline_ns).min();
            assert_eq!(earliest_ns, self.client.next_timeout());
        }
    }
}

/// The model's transitions.
impl Play {
    fn send_next(&mut self) {
        if let Some(first) = self.requests.front_mut().filter(|first| !first.is_sent) {
            first.is_sent = true;
            self.sent.push(format!("{}#{}", request_of(first.op, first.tag), first.tag));
        }
    }

    fn give_up(&mut self, place: usize) {
        if self.requests[place].is_sent {
            self.requests[place].is_awaited = false;
        } else {
            self.requests.remove(place);
        }
    }

    fn expect_answer(&mut self, tag: usize) {
        if self.phase != Phase::Open {
            return;
        }
        let first = self.requests.pop_front().unwrap();
        assert!(first.is_sent && first.tag == tag, "the server answers what it was asked");
        if first.is_awaited {
            let payload = answer_of(tag).into_bytes().into();
            self.expected.push(ClientEvent::Answer { tag, op: first.op, payload });
        } else {
            self.late += 1;
        }
        self.send_next();
    }

    fn expect_expired(&mut self) {
        let is_due = |noted: &Noted| noted.is_awaited && noted.deadline_ns <= Some(self.now_ns);
        let due: Vec<usize> = self
            .requests
            .iter()
            .filter(|noted| noted.deadline_ns.is_some() && is_due(noted))
            .map(|noted| noted.tag)
            .collect();
        for tag in due {
            let place = self.requests.iter().position(|noted| noted.tag == tag).unwrap();
            let (op, failure) = (self.requests[place].op, Failure::Expired);
            self.give_up(place);
            self.expected.push(ClientEvent::Failed { tag, op, failure });
        }
    }

    fn expect_failed(&mut self) {
        let failure = Failure::Closed;
        let awaited = self.requests.drain(..).filter(|noted| noted.is_awaited);
        self.expected.extend(awaited.map(|Noted { tag, op, .. }| ClientEvent::Failed {
            tag,
            op,
            failure,
        }));
    }

    fn expect_closed(&mut self) {
        if self.phase != Phase::Closed {
            self.expect_failed();
            self.expected.push(ClientEvent::Closed);
            self.phase = Phase::Closed;
        }
    }
}

fn request_of(op: Op, tag: usize) -> String {
    match op {
        Op::State => r#"{"type":"state"}"#.into(),
        _ => format!(r#"{{"type":"{}","data":{{"n":{tag}}}}}"#, op.name()),
    }
}

fn answer_of(tag: usize) -> String {
    format!(r#"{{"type":"observation","data":{{"n":{tag}}}}}"#)
}

fn tag_of(request: &str) -> Option<usize> {
    request.split("\"n\":").nth(1)?.trim_end_matches('}').parse().ok()
}
