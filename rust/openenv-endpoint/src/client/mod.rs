//! The client side of one classic connection; the theory is at the top of the crate.

mod event;

use alloc::{borrow::Cow, boxed::Box, vec::Vec};
use core::mem;

use openenv_proto::{
    Answer, ClientSession, Op, ReplyKind, RequestId, SessionError, begin_request, end_request,
    split,
};
use openenv_ws::{
    ClientHandshake, Connection, Event, FrameStart, HandshakeError, MaskSource, MessageKind, Role,
    Upgraded,
};

pub use event::{ClientConfig, ClientEvent, Failure, Phase, SubmitError};

use crate::{
    CLOSE_TIMEOUT_NS,
    cause::Cause,
    keepalive::{Due, Keepalive, KeepaliveConfig},
};

/// A request whose payload is being written; see [`ClientEndpoint::begin`].
#[derive(Debug)]
#[must_use = "a begun request is not sent until it is submitted"]
pub struct Begun {
    start: FrameStart,
    op: Op,
    message_at: usize,
}

/// The client's side of one connection. `T` is what the caller keeps with a request.
#[derive(Debug)]
pub struct ClientEndpoint<T> {
    stage: Stage,
    connection: Connection,
    session: ClientSession<T>,
    keepalive: Keepalive,
    config: Bounds,
    output: Vec<u8>,
    cause: Option<Cause>,
    late_answers: u64,
}

#[derive(Debug)]
struct Bounds {
    keepalive: KeepaliveConfig,
    peer_max_message_bytes: Option<usize>,
}

#[derive(Debug)]
enum Stage {
    Idle(Box<ClientHandshake>),
    Connecting { handshake: Box<ClientHandshake>, deadline_ns: u64 },
    Open,
    Closing { deadline_ns: u64 },
    Closed,
}

impl<T> ClientEndpoint<T> {
    /// An endpoint that has not sent anything. `nonce` is random.
    ///
    /// # Errors
    /// A header, the host or the target cannot be sent.
    pub fn new(config: &ClientConfig, nonce: [u8; 16]) -> Result<Self, HandshakeError> {
        let ClientConfig { host, target, headers, limits, session_limits, keepalive } = config;
        let handshake = ClientHandshake::new(host, target, headers, &[], nonce, *limits)?;
        Ok(Self {
            stage: Stage::Idle(Box::new(handshake)),
            connection: Connection::new(Role::Client, *limits),
            session: ClientSession::new(*session_limits),
            keepalive: Keepalive::new(KeepaliveConfig::OFF, 0),
            config: Bounds { keepalive: *keepalive, peer_max_message_bytes: None },
            output: Vec::new(),
            cause: None,
            late_answers: 0,
        })
    }

    /// Queues the upgrade request; it must be answered by `deadline_ns`. Works once.
    pub fn connect(&mut self, deadline_ns: u64) {
        match mem::replace(&mut self.stage, Stage::Closed) {
            Stage::Idle(handshake) => {
                self.output.extend_from_slice(&handshake.request());
                self.stage = Stage::Connecting { handshake, deadline_ns };
            }
            other => self.stage = other,
        }
    }

    /// Begins a request in `frame`: header room and the text before the payload. Append the
    /// payload, then [`submit`](Self::submit).
    pub fn begin(&self, op: Op, frame: &mut Vec<u8>) -> Begun {
        let start = self.connection.begin(frame);
        let message_at = frame.len();
        begin_request(op, frame);
        Begun { start, op, message_at }
    }

    /// Finishes the request begun by `start` and takes it. `Some(frame)` is to be written now;
    /// `None`: it waits behind the unanswered one and comes out of `output` in its turn.
    ///
    /// # Errors
    /// Nothing was taken; all are local faults.
    pub fn submit(
        &mut self,
        begun: Begun,
        mut frame: Vec<u8>,
        deadline_ns: Option<u64>,
        tag: T,
        mask: &mut dyn MaskSource,
    ) -> Result<(RequestId, Option<Vec<u8>>), SubmitError> {
        if !matches!(self.stage, Stage::Open) {
            return Err(SubmitError::NotOpen);
        }
        let Begun { start, op, message_at } = begun;
        end_request(op, &mut frame);
        self.check_length(frame.len().saturating_sub(message_at))?;
        let range = self
            .connection
            .seal(start, MessageKind::Text, &mut frame, mask)
            .map_err(|_| SubmitError::NotOpen)?;
        frame.drain(..range.start);
        self.session.submit(op, frame, deadline_ns, tag).map_err(SubmitError::Session)
    }

    /// The caller of `id` gave up; gives its tag back, `None` if it was answered already.
    pub fn abandon(&mut self, id: RequestId) -> Option<T> {
        self.session.abandon(id)
    }

    /// Takes what was read and appends what happened to `events`.
    pub fn receive<'i>(
        &mut self,
        data: &'i [u8],
        now_ns: u64,
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'i, T>>,
    ) {
        match &mut self.stage {
            Stage::Connecting { handshake, .. } => match handshake.receive(data) {
                Ok(None) => {}
                Ok(Some(upgraded)) => self.open(upgraded, now_ns, mask, events),
                Err(error) => self.finish(Cause::Handshake(error), events),
            },
            Stage::Open | Stage::Closing { .. } => {
                self.keepalive.heard(now_ns);
                self.messages(data, mask, events);
            }
            Stage::Idle(_) | Stage::Closed => {}
        }
    }

    /// Runs the timers that are due at `now_ns`.
    pub fn tick(
        &mut self,
        now_ns: u64,
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'_, T>>,
    ) {
        match self.stage {
            Stage::Connecting { deadline_ns, .. } if deadline_ns <= now_ns => {
                self.finish(Cause::ConnectTimedOut, events);
            }
            Stage::Closing { deadline_ns } if deadline_ns <= now_ns => {
                self.finish(Cause::ClosedByCaller, events);
            }
            Stage::Open => self.tick_open(now_ns, mask, events),
            Stage::Idle(_) | Stage::Connecting { .. } | Stage::Closing { .. } | Stage::Closed => {}
        }
    }

    /// When [`tick`](Self::tick) has to be called next. May change with every call.
    pub fn next_timeout(&self) -> Option<u64> {
        match self.stage {
            Stage::Connecting { deadline_ns, .. } | Stage::Closing { deadline_ns } => {
                Some(deadline_ns)
            }
            Stage::Open => {
                let deadlines = [self.session.next_deadline(), self.keepalive.next()];
                deadlines.into_iter().flatten().min()
            }
            Stage::Idle(_) | Stage::Closed => None,
        }
    }

    /// Says goodbye: fails what waits, tells the server to end the session and sends a Close.
    pub fn close(
        &mut self,
        code: u16,
        now_ns: u64,
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'_, T>>,
    ) {
        match self.stage {
            Stage::Open => {
                self.fail_all(events);
                self.farewell(code, mask);
                self.cause = self.cause.take().or(Some(Cause::ClosedByCaller));
                self.stage =
                    Stage::Closing { deadline_ns: now_ns.saturating_add(CLOSE_TIMEOUT_NS) };
            }
            Stage::Idle(_) | Stage::Connecting { .. } => {
                self.finish(Cause::ClosedByCaller, events);
            }
            Stage::Closing { .. } | Stage::Closed => {}
        }
    }

    /// The transport has ended.
    pub fn eof(&mut self, events: &mut Vec<ClientEvent<'_, T>>) {
        self.finish(Cause::Ended, events);
    }

    /// Bytes to write now; the caller drains it.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The longest message the server takes, once it has said so.
    pub fn set_peer_max_message_bytes(&mut self, bytes: usize) {
        self.config.peer_max_message_bytes = Some(bytes);
    }

    /// The longest message the server takes, if it has said so.
    pub fn peer_max_message_bytes(&self) -> Option<usize> {
        self.config.peer_max_message_bytes
    }

    /// Where the connection stands.
    pub fn phase(&self) -> Phase {
        match self.stage {
            Stage::Idle(_) => Phase::Idle,
            Stage::Connecting { .. } => Phase::Connecting,
            Stage::Open => Phase::Open,
            Stage::Closing { .. } => Phase::Closing,
            Stage::Closed => Phase::Closed,
        }
    }

    /// Why it is over, or about to be.
    pub fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// Answers the server owes to requests nobody waits for.
    pub fn owed(&self) -> usize {
        self.session.owed()
    }

    /// What is kept with the requests that are still waited for, in the order of submission.
    pub fn tags(&self) -> impl Iterator<Item = &T> {
        self.session.tags()
    }

    /// Nothing is in flight, owed or waiting.
    pub fn is_idle(&self) -> bool {
        self.session.is_idle()
    }

    /// Answers that came too late and were dropped.
    pub fn late_answers(&self) -> u64 {
        self.late_answers
    }

    fn check_length(&self, bytes: usize) -> Result<(), SubmitError> {
        match self.config.peer_max_message_bytes {
            Some(limit) if bytes > limit => Err(SubmitError::TooLong { bytes, limit }),
            _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        upgraded: Upgraded,
        now_ns: u64,
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'_, T>>,
    ) {
        self.stage = Stage::Open;
        self.keepalive = Keepalive::new(self.config.keepalive, now_ns);
        events.push(ClientEvent::Opened { headers: upgraded.headers });
        let mut early = Vec::new();
        self.messages(&upgraded.rest, mask, &mut early);
        for event in early {
            events.push(event.into_owned());
        }
    }

    fn messages<'i>(
        &mut self,
        mut input: &'i [u8],
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'i, T>>,
    ) {
        loop {
            match self.connection.receive(&mut input, mask) {
                Ok(None) => break,
                Ok(Some(Event::Message { payload, .. })) => self.message(payload, mask, events),
                Ok(Some(Event::Close { code, reason })) => {
                    self.drain_control();
                    self.finish(Cause::ClosedByPeer { code, reason }, events);
                }
                Ok(Some(Event::Ping(_) | Event::Pong(_))) => {}
                Err(error) => {
                    self.drain_control();
                    self.finish(Cause::Protocol(error), events);
                }
            }
        }
        self.drain_control();
    }

    fn message<'i>(
        &mut self,
        payload: Cow<'i, [u8]>,
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'i, T>>,
    ) {
        match self.session.answer() {
            Ok(Answer::Deliver(tag, op)) => events.push(ClientEvent::Answer { tag, op, payload }),
            Ok(Answer::Late(_)) => self.late_answers += 1,
            Err(SessionError::UnsolicitedAnswer) => self.unsolicited(payload, mask, events),
            // Closing: what still comes belongs to nobody.
            Err(_) => {}
        }
        if let Some(frame) = self.session.next_frame() {
            self.output.extend_from_slice(&frame);
        }
    }

    /// An error is the server's last word before it closes; anything else breaks the order of
    /// answers, and no later answer could be trusted.
    fn unsolicited<'i>(
        &mut self,
        payload: Cow<'i, [u8]>,
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'i, T>>,
    ) {
        if split(&payload).is_ok_and(|envelope| envelope.kind.reply() == Some(ReplyKind::Error)) {
            return events.push(ClientEvent::Refused { payload });
        }
        let cause = Cause::UnsolicitedAnswer;
        // The code is one that may be sent and the reason empty, so this cannot be refused.
        let sent = self.connection.close(cause.close_code(), "", mask);
        debug_assert!(sent.is_ok());
        self.drain_control();
        self.finish(cause, events);
    }

    fn tick_open(
        &mut self,
        now_ns: u64,
        mask: &mut dyn MaskSource,
        events: &mut Vec<ClientEvent<'_, T>>,
    ) {
        let mut expired = Vec::new();
        self.session.expire(now_ns, &mut expired);
        events.extend(expired.into_iter().map(|(tag, op)| ClientEvent::Failed {
            tag,
            op,
            failure: Failure::Expired,
        }));
        match self.keepalive.tick(now_ns) {
            Due::Nothing => {}
            Due::Ping => {
                // Refused only when the output is full of pings already, which will do as well.
                let _ = self.connection.ping(b"", mask);
                self.drain_control();
            }
            Due::Dead => self.finish(Cause::KeepaliveTimedOut, events),
        }
    }

    fn farewell(&mut self, code: u16, mask: &mut dyn MaskSource) {
        let mut text = Vec::new();
        begin_request(Op::Close, &mut text);
        end_request(Op::Close, &mut text);
        // Both can only be refused when the connection is closed, and then nothing is owed.
        let _ = self.connection.append(MessageKind::Text, &text, &mut self.output, mask);
        let _ = self.connection.close(code, "", mask);
        self.drain_control();
    }

    fn finish(&mut self, cause: Cause, events: &mut Vec<ClientEvent<'_, T>>) {
        if matches!(self.stage, Stage::Closed) {
            return;
        }
        self.stage = Stage::Closed;
        self.cause = self.cause.take().or(Some(cause));
        self.fail_all(events);
        events.push(ClientEvent::Closed);
    }

    fn fail_all(&mut self, events: &mut Vec<ClientEvent<'_, T>>) {
        let failure = Failure::Closed;
        let failed = self.session.fail_all();
        events.extend(failed.into_iter().map(|(tag, op)| ClientEvent::Failed { tag, op, failure }));
    }

    fn drain_control(&mut self) {
        self.output.append(self.connection.output());
    }
}
