//! RFC 6455 (WebSocket) as a machine without sockets, clocks or randomness.
//!
//! # Theory
//!
//! Bytes go in, events and bytes come out; the caller owns the transport and the entropy.
//!
//! ```text
//!            ClientHandshake / ServerHandshake (§4)
//!                          | bytes after the head (`rest`)
//!                          v
//!   input --> receiver --> Connection --> Event: Message, Ping, Pong, Close
//!             (frame §5.2,     |
//!              mask §5.3,      +--> output(): pongs, pings and Close frames to write now
//!              utf8 §8.1)
//!   payload --> begin .. seal --> one finished frame in the caller's own buffer
//! ```
//!
//! The states of a [`Connection`] (§7.1):
//!
//! ```text
//!   Open --close()--> CloseSent --peer's Close--> Closed
//!     |                   |
//!     |                   +--eof / failure------> Closed
//!     +--peer's Close--> CloseReceived (echo queued) --echo drained / eof--> Closed
//!     +--eof / failure (a Close frame is queued)--> Closed
//! ```
//!
//! Rules:
//!
//! 1. Messages are sent in `Open` only. They are delivered in `Open` and in `CloseSent`, since a
//!    peer may finish what it was sending before it answers a Close (§5.5.1).
//! 2. After the peer's Close or a failure, input is ignored (§5.5.1, §7.1.7).
//! 3. A client masks every frame, a server none; the opposite is a failure (§5.1).
//! 4. Text is UTF-8, checked as it arrives, across fragments and inside frames (§8.1).
//! 5. Any split of the input gives the same events and the same failure.
//! 6. Memory follows what has arrived, never what a header declares, and stays below [`Limits`].
//! 7. No extension is negotiated: the client offers none and refuses an answer with any, the
//!    server answers none. Reserved bits are a failure (§5.2, §9).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod close;
mod connection;
mod error;
mod frame;
mod handshake;
mod limits;
mod mask;
mod outbox;
mod receiver;
mod utf8;

pub use connection::{Connection, FrameStart, State};
pub use error::{Error, Fault};
pub use frame::{MessageKind, Role};
pub use handshake::{ClientHandshake, HandshakeError, Request, ServerHandshake, Upgraded};
pub use limits::Limits;
pub use mask::{MaskSource, Unmasked};
pub use receiver::Event;
