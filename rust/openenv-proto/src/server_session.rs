//! The server's half of a classic session: which message executes now, and which wait.
//!
//! An environment is one thing that one caller drives, so one message executes at a time; others
//! wait in the order of arrival, which is also the order of the replies. A client that pipelines
//! more than the limit is slowed down by not being read, never refused.
//!
//! ```text
//!             admit -> Execute                    admit -> Queued | Pause
//!      idle ────────────────────> executing ───┐  (waits behind)
//!       ^                          │  ^   ^    │
//!       │  finished -> None        │  │   └────┘
//!       └──────────────────────────┘  │
//!                                  finished -> Some(next)
//!
//!   closing: what waits is dropped, later messages are Ignored, finished -> None.
//! ```
//!
//! Idleness: a session is idle from its last admission or completion on, and only while nothing
//! executes. A step that takes an hour does not expire.

use alloc::{collections::VecDeque, vec::Vec};

use crate::{
    envelope::{Envelope, split},
    message::Op,
};

/// A client's message, looked at from the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a message has upstream's exact shape or it has not")]
pub enum Incoming<'a> {
    /// Exactly upstream's shape; `data` is a raw JSON object.
    Regular {
        /// What is asked.
        op: Op,
        /// Raw JSON object; always there for `step` and `mcp`, never for `state` and `close`.
        data: Option<&'a [u8]>,
    },
    /// Anything else. The caller decides again the slow way, with upstream's wording.
    Irregular,
}

/// Tells regular requests from all else.
///
/// Regular: a JSON object of the keys `type` and `data` only, each at most once, with a known type
/// and with `data` an object for `step` and `mcp`, absent or an object for `reset`, absent for
/// `state` and `close`.
pub fn classify(text: &[u8]) -> Incoming<'_> {
    let Ok(Envelope { kind, data, ext: None, extra: false }) = split(text) else {
        return Incoming::Irregular;
    };
    let Some(op) = kind.op() else {
        return Incoming::Irregular;
    };
    match (op, data) {
        (Op::Mcp | Op::Reset | Op::Step, Some([b'{', ..]))
        | (Op::Close | Op::Reset | Op::State, None) => Incoming::Regular { op, data },
        _ => Incoming::Irregular,
    }
}

/// Bounds of a server session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Messages that may wait before reading stops.
    ///
    /// 16: `websockets`' queue, which upstream's server runs on. A classic client needs 1.
    pub max_pipelined: usize,
    /// Bytes that may wait before reading stops.
    ///
    /// 1 MiB: sixteen waiting actions of a generous 64 KiB.
    pub max_pipelined_bytes: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { max_pipelined: 16, max_pipelined_bytes: 1024 * 1024 }
    }
}

/// What to do with a message that has arrived.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the caller must decide on each")]
pub enum Admit {
    /// Execute it now, then call [`ServerSession::finished`].
    Execute(Vec<u8>),
    /// The session is closing: it was dropped.
    Ignored,
    /// It waits.
    Queued,
    /// It waits, and reading should stop until [`ServerSession::should_resume`].
    Pause,
}

/// The machine.
#[derive(Debug)]
pub struct ServerSession {
    limits: ServerLimits,
    phase: Phase,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    last_activity_ns: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Idle,
    Executing,
    /// Closing while a message still executes.
    Draining,
    /// Closing, nothing executes.
    Closed,
}

impl ServerSession {
    /// An idle session, active at `now_ns`.
    pub fn new(limits: ServerLimits, now_ns: u64) -> Self {
        Self {
            limits,
            phase: Phase::Idle,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            last_activity_ns: now_ns,
        }
    }

    /// Takes a message.
    pub fn admit(&mut self, message: Vec<u8>, now_ns: u64) -> Admit {
        match self.phase {
            Phase::Closed | Phase::Draining => Admit::Ignored,
            Phase::Executing => {
                self.touch(now_ns);
                self.enqueue(message)
            }
            Phase::Idle => {
                self.touch(now_ns);
                self.phase = Phase::Executing;
                Admit::Execute(message)
            }
        }
    }

    /// The executing message has been answered. Gives the next one to execute.
    ///
    /// To be called once for each message to execute; with nothing executing it does nothing.
    pub fn finished(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        match self.phase {
            Phase::Closed | Phase::Idle => return None,
            Phase::Draining => self.phase = Phase::Closed,
            Phase::Executing => {}
        }
        self.touch(now_ns);
        let next = self.waiting.pop_front();
        match &next {
            Some(message) => self.waiting_bytes -= message.len(),
            None if self.phase == Phase::Executing => self.phase = Phase::Idle,
            None => {}
        }
        next
    }

    /// The session ends: drops what waits. What executes may finish.
    pub fn closing(&mut self) {
        self.phase = match self.phase {
            Phase::Closed | Phase::Idle => Phase::Closed,
            Phase::Draining | Phase::Executing => Phase::Draining,
        };
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// A message executes.
    pub fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Executing)
    }

    /// [`Self::closing`] was called.
    pub fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closed | Phase::Draining)
    }

    /// Messages that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// As much waits as the limits allow.
    pub fn should_pause(&self) -> bool {
        self.waiting.len() >= self.limits.max_pipelined
            || self.waiting_bytes >= self.limits.max_pipelined_bytes
    }

    /// At most half of the limits waits; the gap to [`Self::should_pause`] keeps the transport from
    /// being switched with every message.
    pub fn should_resume(&self) -> bool {
        self.waiting.len() <= self.limits.max_pipelined / 2
            && self.waiting_bytes <= self.limits.max_pipelined_bytes / 2
    }

    /// When the last message was admitted or finished.
    pub fn last_activity_ns(&self) -> u64 {
        self.last_activity_ns
    }

    /// When the session will have been idle for `timeout_ns`; `None` while it is busy.
    pub fn expires_at(&self, timeout_ns: u64) -> Option<u64> {
        (!self.is_busy()).then(|| self.last_activity_ns.saturating_add(timeout_ns))
    }

    /// The session has been idle for `timeout_ns` or longer.
    pub fn expired(&self, now_ns: u64, timeout_ns: u64) -> bool {
        self.expires_at(timeout_ns).is_some_and(|expires_at_ns| expires_at_ns <= now_ns)
    }

    fn enqueue(&mut self, message: Vec<u8>) -> Admit {
        self.waiting_bytes = self.waiting_bytes.saturating_add(message.len());
        self.waiting.push_back(message);
        if self.should_pause() { Admit::Pause } else { Admit::Queued }
    }

    fn touch(&mut self, now_ns: u64) {
        self.last_activity_ns = self.last_activity_ns.max(now_ns);
    }
}
