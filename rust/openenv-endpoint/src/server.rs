//! The server side of one classic connection; the theory is at the top of the crate.
//!
//! ```text
//!   Handshake --request--> Deciding --accept--> Open --close--> Closing --peer's Close--> Closed
//!       |                     |                  |                 |
//!       +--refused, timeout   +--reject          +--peer's Close,  +--eof, timeout
//! ```
//!
//! One message executes at a time: [`ServerEvent::Message`] hands it out, [`ServerEndpoint::answer`]
//! takes its reply and hands out the next.

use alloc::{string::String, vec::Vec};

use openenv_proto::{Admit, ServerLimits, ServerSession};
use openenv_ws::{
    Connection, Error, Event, HandshakeError, Limits, MessageKind, Request, Role, ServerHandshake,
    Unmasked,
};

use crate::{
    CLOSE_TIMEOUT_NS,
    cause::Cause,
    keepalive::{Due, Keepalive, KeepaliveConfig},
};

/// Within which bounds to serve.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plain record of settings")]
pub struct ServerConfig {
    /// Bounds on what the client can make this side hold.
    pub limits: Limits,
    /// Bounds on requests that wait.
    pub session_limits: ServerLimits,
    /// When to ping.
    pub keepalive: KeepaliveConfig,
    /// Nanoseconds the upgrade request may take, and the caller's decision on it.
    pub handshake_timeout_ns: u64,
}

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "drawn whole at the top of the module")]
pub enum ServerPhase {
    /// The upgrade request has not arrived.
    Handshake,
    /// It has; the caller accepts or rejects.
    Deciding,
    /// Messages come and go.
    Open,
    /// A Close frame was sent; the peer's is awaited.
    Closing,
    /// Over: write the output, then close the transport.
    Closed,
}

/// What has happened, in order.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client wants to connect: [`ServerEndpoint::accept`] or [`ServerEndpoint::reject`].
    Upgrade {
        /// Path and query.
        target: String,
        /// Header fields as they came.
        headers: Vec<(String, String)>,
        /// Subprotocols offered.
        subprotocols: Vec<String>,
    },
    /// A message to execute now.
    Message(Vec<u8>),
    /// The connection is over; see [`ServerEndpoint::cause`].
    Closed,
}

/// The server's side of one connection.
#[derive(Debug)]
pub struct ServerEndpoint {
    stage: Stage,
    connection: Connection,
    session: ServerSession,
    keepalive: Keepalive,
    config: ServerConfig,
    output: Vec<u8>,
    cause: Option<Cause>,
}

#[derive(Debug)]
enum Stage {
    Handshake { handshake: ServerHandshake, deadline_ns: u64 },
    Deciding { request: Request, deadline_ns: u64 },
    Open,
    Closing { deadline_ns: u64 },
    Closed,
}

impl ServerEndpoint {
    /// An endpoint on a transport that was accepted at `now_ns`.
    pub fn new(config: ServerConfig, now_ns: u64) -> Self {
        let deadline_ns = now_ns.saturating_add(config.handshake_timeout_ns);
        let handshake = ServerHandshake::new(config.limits);
        Self {
            stage: Stage::Handshake { handshake, deadline_ns },
            connection: Connection::new(Role::Server, config.limits),
            session: ServerSession::new(config.session_limits, now_ns),
            keepalive: Keepalive::new(KeepaliveConfig::OFF, now_ns),
            config,
            output: Vec::new(),
            cause: None,
        }
    }

    /// Takes what was read and appends what happened to `events`.
    pub fn receive(&mut self, data: &[u8], now_ns: u64, events: &mut Vec<ServerEvent>) {
        match &mut self.stage {
            Stage::Handshake { handshake, deadline_ns } => {
                let deadline_ns = *deadline_ns;
                match handshake.receive(data) {
                    Ok(None) => {}
                    Ok(Some(request)) => self.decide(request, deadline_ns, events),
                    Err(error) => self.refuse(error, events),
                }
            }
            Stage::Deciding { request, .. } => {
                request.rest.extend_from_slice(data);
                let limit = self.config.limits.max_header_bytes;
                if request.rest.len() > limit {
                    self.finish(Cause::Protocol(Error::MessageTooBig { limit }), events);
                }
            }
            Stage::Open | Stage::Closing { .. } => {
                self.keepalive.heard(now_ns);
                self.messages(data, now_ns, events);
            }
            Stage::Closed => {}
        }
    }

    /// Agrees to the upgrade, with further headers.
    ///
    /// # Errors
    /// A local fault: a header cannot be sent, the subprotocol was not offered, or no client waits
    /// for a decision.
    pub fn accept(
        &mut self,
        subprotocol: Option<&str>,
        headers: &[(String, String)],
        now_ns: u64,
        events: &mut Vec<ServerEvent>,
    ) -> Result<(), HandshakeError> {
        let Stage::Deciding { request, .. } = &mut self.stage else {
            return Err(HandshakeError::Finished);
        };
        let answer = ServerHandshake::accept(request, subprotocol, headers)?;
        let rest = core::mem::take(&mut request.rest);
        self.output.extend_from_slice(&answer);
        self.stage = Stage::Open;
        self.keepalive = Keepalive::new(self.config.keepalive, now_ns);
        self.messages(&rest, now_ns, events);
        Ok(())
    }

    /// Refuses the upgrade with an HTTP answer.
    ///
    /// # Errors
    /// A local fault: the answer cannot be sent, or no client waits for a decision.
    pub fn reject(
        &mut self,
        status: u16,
        reason: &str,
        body: &[u8],
        events: &mut Vec<ServerEvent>,
    ) -> Result<(), HandshakeError> {
        if !matches!(self.stage, Stage::Deciding { .. }) {
            return Err(HandshakeError::Finished);
        }
        let answer = ServerHandshake::reject(status, reason, &[], body)?;
        self.output.extend_from_slice(&answer);
        self.finish(Cause::ClosedByCaller, events);
        Ok(())
    }

    /// Sends the reply to the executing message and hands out the next one. `None`: it has none.
    pub fn answer(&mut self, reply: Option<&[u8]>, now_ns: u64, events: &mut Vec<ServerEvent>) {
        if let Some(reply) = reply {
            self.send(reply);
        }
        if let Some(message) = self.session.finished(now_ns) {
            events.push(ServerEvent::Message(message));
        }
    }

    /// Sends a text that answers no message: the error before a close. Outside `Open` nobody is
    /// there to read it, and it is dropped.
    pub fn send(&mut self, text: &[u8]) {
        if !matches!(self.stage, Stage::Open) {
            return;
        }
        // Refused only when the connection is not open, and this stage ends with it.
        let _ = self.connection.append(MessageKind::Text, text, &mut self.output, &mut Unmasked);
    }

    /// Starts the closing handshake; what waits is dropped, what executes may finish.
    pub fn close(&mut self, code: u16, reason: &str, now_ns: u64, events: &mut Vec<ServerEvent>) {
        match self.stage {
            Stage::Open => {
                let sent = self.connection.close(code, reason, &mut Unmasked);
                debug_assert!(sent.is_ok(), "the caller's code and reason can be sent");
                self.drain_control();
                self.session.closing();
                self.cause = Some(Cause::ClosedByCaller);
                self.stage =
                    Stage::Closing { deadline_ns: now_ns.saturating_add(CLOSE_TIMEOUT_NS) };
            }
            Stage::Handshake { .. } | Stage::Deciding { .. } => {
                self.finish(Cause::ClosedByCaller, events);
            }
            Stage::Closing { .. } | Stage::Closed => {}
        }
    }

    /// The transport has ended.
    pub fn eof(&mut self, events: &mut Vec<ServerEvent>) {
        self.finish(Cause::Ended, events);
    }

    /// Runs the timers that are due at `now_ns`.
    pub fn tick(&mut self, now_ns: u64, events: &mut Vec<ServerEvent>) {
        match self.stage {
            Stage::Handshake { deadline_ns, .. } | Stage::Deciding { deadline_ns, .. }
                if deadline_ns <= now_ns =>
            {
                self.finish(Cause::ConnectTimedOut, events);
            }
            Stage::Closing { deadline_ns } if deadline_ns <= now_ns => {
                self.finish(Cause::ClosedByCaller, events);
            }
            Stage::Open => match self.keepalive.tick(now_ns) {
                Due::Nothing => {}
                Due::Ping => {
                    // Refused only when the output is full of pings already.
                    let _ = self.connection.ping(b"", &mut Unmasked);
                    self.drain_control();
                }
                Due::Dead => self.finish(Cause::KeepaliveTimedOut, events),
            },
            _ => {}
        }
    }

    /// When [`tick`](Self::tick) has to be called next. May change with every call.
    pub fn next_timeout(&self) -> Option<u64> {
        match self.stage {
            Stage::Handshake { deadline_ns, .. }
            | Stage::Deciding { deadline_ns, .. }
            | Stage::Closing { deadline_ns } => Some(deadline_ns),
            Stage::Open => self.keepalive.next(),
            Stage::Closed => None,
        }
    }

    /// Bytes to write now; the caller drains it.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Where the connection stands.
    pub fn phase(&self) -> ServerPhase {
        match self.stage {
            Stage::Handshake { .. } => ServerPhase::Handshake,
            Stage::Deciding { .. } => ServerPhase::Deciding,
            Stage::Open => ServerPhase::Open,
            Stage::Closing { .. } => ServerPhase::Closing,
            Stage::Closed => ServerPhase::Closed,
        }
    }

    /// The session's order of messages: whether to pause reading, when it expires.
    pub fn session(&self) -> &ServerSession {
        &self.session
    }

    /// Why it is over, or about to be.
    pub fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    fn decide(&mut self, request: Request, deadline_ns: u64, events: &mut Vec<ServerEvent>) {
        events.push(ServerEvent::Upgrade {
            target: request.target.clone(),
            headers: request.headers.clone(),
            subprotocols: request.subprotocols.clone(),
        });
        self.stage = Stage::Deciding { request, deadline_ns };
    }

    fn refuse(&mut self, error: HandshakeError, events: &mut Vec<ServerEvent>) {
        self.output.extend_from_slice(&ServerHandshake::refusal(&error));
        self.finish(Cause::Handshake(error), events);
    }

    fn messages(&mut self, mut input: &[u8], now_ns: u64, events: &mut Vec<ServerEvent>) {
        loop {
            match self.connection.receive(&mut input, &mut Unmasked) {
                Ok(None) => break,
                Ok(Some(Event::Message { payload, .. })) => {
                    if let Admit::Execute(message) =
                        self.session.admit(payload.into_owned(), now_ns)
                    {
                        events.push(ServerEvent::Message(message));
                    }
                }
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

    fn finish(&mut self, cause: Cause, events: &mut Vec<ServerEvent>) {
        if matches!(self.stage, Stage::Closed) {
            return;
        }
        self.stage = Stage::Closed;
        self.cause = self.cause.take().or(Some(cause));
        self.session.closing();
        events.push(ServerEvent::Closed);
    }

    fn drain_control(&mut self) {
        self.output.append(self.connection.output());
    }
}
