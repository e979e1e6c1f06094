//! `openenv-ws` and `openenv-proto` joined: one object a connection and side.
//!
//! # Theory
//!
//! Bytes and times go in; events and bytes come out. The driver owns the socket, the clock and the
//! entropy. It feeds what it reads to `receive`, writes what `output` holds, calls `tick` at
//! `next_timeout` and, once `is_closed`, writes the rest and closes the transport.
//!
//! ```text
//!   Idle --connect--> Connecting --101--> Open --close--> Closing --peer's Close--> Closed
//!                        |                  |                |
//!                        +--refused,        +--peer's Close, +--eof, timeout--> Closed
//!                           timeout            failure, eof,
//!                           --> Closed         silence --> Closed
//! ```
//!
//! Rules:
//!
//! 1. Requests are taken in `Open` only. Each gets exactly one event: its answer, its expiry or
//!    its failure, unless its caller abandons it first.
//! 2. Every way into `Closed` records one [`Cause`] and fails everything that still waits.
//! 3. Nothing is delivered after `Closed`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod cause;
mod client;
mod keepalive;
mod server;

pub use cause::Cause;
pub use client::{Begun, ClientConfig, ClientEndpoint, ClientEvent, Failure, Phase, SubmitError};
pub use keepalive::KeepaliveConfig;
pub use openenv_proto::{ClientLimits, Op, RequestId, ServerLimits};
pub use openenv_ws::{HandshakeError, Limits, MaskSource, MessageKind};
pub use server::{ServerConfig, ServerEndpoint, ServerEvent, ServerPhase};

/// Nanoseconds the closing handshake may take before the transport is closed without it.
///
/// 5 s: half of `websockets`' default, since the peer of a closing environment is often gone.
pub const CLOSE_TIMEOUT_NS: u64 = 5_000_000_000;
