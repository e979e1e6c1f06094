//! The whole classic server machine as an echo of text.

use core::mem;
use std::{io, net::TcpStream, time::Instant};

use openenv_endpoint::{
    KeepaliveConfig, Limits, ServerConfig, ServerEndpoint, ServerEvent, ServerLimits, ServerPhase,
};

use crate::{machine::Machine, transport::pump};

/// Ten seconds for a head that arrives in one piece.
const HANDSHAKE_TIMEOUT_NS: u64 = 10_000_000_000;

/// Serves one connection: the upgrade, then an echo of text.
///
/// # Errors
/// The socket failed.
pub fn serve_endpoint(mut stream: TcpStream) -> io::Result<()> {
    pump(&mut stream, &mut Endpoint::new(), &[])
}

/// A server endpoint whose environment gives each message back.
#[derive(Debug)]
pub struct Endpoint {
    endpoint: ServerEndpoint,
    started: Instant,
}

impl Endpoint {
    /// An endpoint that waits for the upgrade.
    #[expect(clippy::new_without_default, reason = "it reads the clock")]
    pub fn new() -> Self {
        let config = ServerConfig {
            limits: Limits::default(),
            session_limits: ServerLimits::default(),
            keepalive: KeepaliveConfig::OFF,
            handshake_timeout_ns: HANDSHAKE_TIMEOUT_NS,
        };
        Self { endpoint: ServerEndpoint::new(config, 0), started: Instant::now() }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Answers events until none is left; an answer may hand out the next message.
    fn settle(&mut self, mut events: Vec<ServerEvent>) {
        while !events.is_empty() {
            for event in mem::take(&mut events) {
                let now_ns = self.now_ns();
                match event {
                    ServerEvent::Upgrade { .. } => {
                        let accepted = self.endpoint.accept(None, &[], now_ns, &mut events);
                        debug_assert!(accepted.is_ok(), "nothing is added to the answer");
                    }
                    ServerEvent::Message(message) => {
                        self.endpoint.answer(Some(&message), now_ns, &mut events);
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Machine for Endpoint {
    /// Byte by byte, so that a message is answered before the frame behind it is looked at: the
    /// verdict on a wrong frame would else depend on what the kernel has joined into one read.
    fn take(&mut self, input: &[u8]) -> Vec<u8> {
        for byte in input.chunks(1) {
            let mut events = Vec::new();
            self.endpoint.receive(byte, self.now_ns(), &mut events);
            self.settle(events);
        }
        mem::take(self.endpoint.output())
    }

    fn is_over(&self) -> bool {
        self.endpoint.phase() == ServerPhase::Closed
    }
}
