//! Invariant: whatever the client sends, cut anywhere, messages execute one at a time, each once, in order; replies leave in that order; nothing is handed out after the end; what waits and when it expires is what a plain list says.
//!
//! Input: deeds of two bytes, what and how much; see `Play::act`.
#![no_main]

use std::{collections::VecDeque, mem};

use libfuzzer_sys::fuzz_target;
use openenv_endpoint::{
    CLOSE_TIMEOUT_NS, KeepaliveConfig, Limits, ServerConfig, ServerEndpoint, ServerEvent,
    ServerLimits, ServerPhase,
};
use openenv_fuzz::{FixedMask, pieces::cut, wire::Wire};
use openenv_ws::{ClientHandshake, Connection, Event, MessageKind, Role};

const MAX_PIPELINED: usize = 4;
const MAX_PIPELINED_BYTES: usize = 200;
const TICK_NS: u64 = 100_000_000;

fuzz_target!(|deeds: &[u8]| {
    let mut play = Play::open();
    for deed in deeds.chunks_exact(2) {
        play.act(deed[0], deed[1]);
        play.check();
    }
    play.end();
});

/// What the client has written.
enum Written {
    Close,
    Control,
    Message(String),
}

struct Play {
    server: ServerEndpoint,
    client: Connection,
    wire: Wire<Written>,
    messages: usize,
    now_ns: u64,
    /// The model.
    executing: Option<String>,
    waiting: VecDeque<String>,
    expected: Vec<ServerEvent>,
    replies: VecDeque<String>,
    active_at_ns: u64,
    phase: ServerPhase,
    closing_at_ns: u64,
}

impl Play {
    fn open() -> Self {
        let mut session_limits = ServerLimits::default();
        session_limits.max_pipelined = MAX_PIPELINED;
        session_limits.max_pipelined_bytes = MAX_PIPELINED_BYTES;
        let config = ServerConfig {
            limits: Limits::default(),
            session_limits,
            keepalive: KeepaliveConfig::OFF,
            handshake_timeout_ns: TICK_NS,
        };
        let mut server = ServerEndpoint::new(config, 0);
        let mut client =
            ClientHandshake::new("host", "/ws", &[], &[], [7; 16], Limits::default()).unwrap();
        let mut events = Vec::new();
        server.receive(&client.request(), 0, &mut events);
        assert!(matches!(events[..], [ServerEvent::Upgrade { .. }]));
        server.accept(None, &[], 0, &mut events).unwrap();
        client.receive(&mem::take(server.output())).unwrap().unwrap();
        Self {
            server,
            client: Connection::new(Role::Client, Limits::default()),
            wire: Wire::default(),
            messages: 0,
            now_ns: 0,
            executing: None,
            waiting: VecDeque::new(),
            expected: Vec::new(),
            replies: VecDeque::new(),
            active_at_ns: 0,
            phase: ServerPhase::Open,
            closing_at_ns: 0,
        }
    }

    fn act(&mut self, what: u8, how_much: u8) {
        match what % 16 {
            0..=4 => self.send(how_much),
            5 => self.ping(how_much),
            6..=9 => self.deliver(how_much),
            10..=12 => self.answer(how_much),
            13 => self.tick(how_much),
            14 => self.say(),
            _ => self.leave(how_much),
        }
    }

    fn end(mut self) {
        self.leave(2);
        self.check();
        assert_eq!(ServerPhase::Closed, self.server.phase());
        assert!(self.server.cause().is_some());
        assert_eq!(None, self.server.next_timeout());
    }

    /// The client sends a message of its own number and of any length.
    fn send(&mut self, padding: u8) {
        let text = format!("{}{}", self.messages, ".".repeat(padding.into()));
        let kind = if padding.is_multiple_of(2) { MessageKind::Text } else { MessageKind::Binary };
        let mut bytes = Vec::new();
        if self.client.append(kind, text.as_bytes(), &mut bytes, &mut FixedMask).is_ok() {
            self.messages += 1;
            self.wire.write(&bytes, Written::Message(text));
        }
    }

    fn ping(&mut self, length: u8) {
        let payload = vec![b'p'; usize::from(length % 126)];
        if self.client.ping(&payload, &mut FixedMask).is_ok() {
            let bytes = mem::take(self.client.output());
            self.wire.write(&bytes, Written::Control);
        }
    }

    fn deliver(&mut self, count: u8) {
        let (bytes, notes) = self.wire.read(usize::from(count));
        for note in notes {
            match note {
                Written::Message(text) => self.expect_message(text),
                Written::Close => self.expect_closed(),
                Written::Control => {}
            }
        }
        let mut events = Vec::new();
        for piece in cut(&bytes, count) {
            self.server.receive(piece, self.now_ns, &mut events);
        }
        self.compare(events);
    }

    /// The environment has finished; now and then it has no reply.
    fn answer(&mut self, how: u8) {
        let reply = self.executing.as_ref().filter(|_| how != 0).map(|text| format!("re {text}"));
        if self.phase == ServerPhase::Open {
            self.replies.extend(reply.clone());
        }
        if self.executing.take().is_some() {
            self.active_at_ns = self.now_ns;
            if let Some(next) = self.waiting.pop_front() {
                self.execute(next);
            }
        }
        let mut events = Vec::new();
        self.server.answer(reply.as_deref().map(str::as_bytes), self.now_ns, &mut events);
        self.compare(events);
    }

    fn tick(&mut self, how_long: u8) {
        self.now_ns += u64::from(how_long) * TICK_NS;
        let is_late = self.closing_at_ns + CLOSE_TIMEOUT_NS <= self.now_ns;
        if self.phase == ServerPhase::Closing && is_late {
            self.expect_closed();
        }
        let mut events = Vec::new();
        self.server.tick(self.now_ns, &mut events);
        self.compare(events);
    }

    /// The server says something that answers nothing.
    fn say(&mut self) {
        if self.phase == ServerPhase::Open {
            self.replies.push_back("news".into());
        }
        self.server.send(b"news");
        self.compare(Vec::new());
    }

    fn leave(&mut self, how: u8) {
        let mut events = Vec::new();
        match how % 4 {
            0 => {
                if self.phase == ServerPhase::Open {
                    (self.phase, self.closing_at_ns) = (ServerPhase::Closing, self.now_ns);
                    self.waiting.clear();
                }
                self.server.close(1001, "away", self.now_ns, &mut events);
            }
            1 => {
                self.client.close(1000, "", &mut FixedMask).unwrap();
                let bytes = mem::take(self.client.output());
                if !bytes.is_empty() {
                    self.wire.write(&bytes, Written::Close);
                }
            }
            2 => {
                self.expect_closed();
                self.server.eof(&mut events);
            }
            _ => {}
        }
        self.compare(events);
    }

    fn compare(&mut self, events: Vec<ServerEvent>) {
        assert_eq!(mem::take(&mut self.expected), events);
        let output = mem::take(self.server.output());
        let mut input = &output[..];
        while let Some(event) = self.client.receive(&mut input, &mut FixedMask).unwrap() {
            if let Event::Message { payload, .. } = event {
                let reply = self.replies.pop_front();
                assert_eq!(reply.as_deref(), str::from_utf8(&payload).ok());
            }
        }
        let output = mem::take(self.client.output());
        if !output.is_empty() {
            self.wire.write(&output, Written::Close);
        }
    }

    fn check(&mut self) {
        assert_eq!(self.phase, self.server.phase());
        // A client that has had the server's Close reads no further.
        assert!(self.replies.is_empty() || self.client.state() != openenv_ws::State::Open);
        self.replies.clear();
        let session = self.server.session();
        let waiting_bytes: usize = self.waiting.iter().map(String::len).sum();
        let is_full = self.waiting.len() >= MAX_PIPELINED || waiting_bytes >= MAX_PIPELINED_BYTES;
        assert_eq!(self.waiting.len(), session.waiting());
        assert_eq!(is_full, session.should_pause());
        assert!(!(session.should_pause() && session.should_resume()));
        assert_eq!(self.executing.is_some(), session.is_busy());
        assert_eq!(self.phase != ServerPhase::Open, session.is_closing());
        let expires_at_ns = self.executing.is_none().then(|| self.active_at_ns + 7);
        assert_eq!(expires_at_ns, session.expires_at(7));
    }
}

/// The model's transitions.
impl Play {
    fn expect_message(&mut self, text: String) {
        if self.phase != ServerPhase::Open {
            return;
        }
        self.active_at_ns = self.now_ns;
        if self.executing.is_some() {
            self.waiting.push_back(text);
        } else {
            self.execute(text);
        }
    }

    fn execute(&mut self, text: String) {
        self.expected.push(ServerEvent::Message(text.clone().into_bytes()));
        self.executing = Some(text);
    }

    fn expect_closed(&mut self) {
        if self.phase != ServerPhase::Closed {
            self.phase = ServerPhase::Closed;
            self.waiting.clear();
            self.expected.push(ServerEvent::Closed);
        }
    }
}
