//! The classic protocol without sockets, clocks or threads.
//!
//! One WebSocket text message is one JSON object, an *envelope*:
//!
//! ```text
//! client -> server   {"type":"reset"|"step"|"mcp","data":{…}}   {"type":"state"}   {"type":"close"}
//! server -> client   {"type":"observation"|"state"|"error"|"mcp","data":{…}[,"ext":{…}]}
//! ```
//!
//! Each request but `close` has exactly one reply, and replies carry no id: the n-th reply belongs
//! to the n-th request. Everything here follows from that.
//!
//! | module | what it holds |
//! |---|---|
//! | [`envelope`] | splits a message into slices of itself |
//! | [`members`] | splits an observation's `data`; joins members into an object |
//! | [`message`], [`reply`] | the fixed text around a payload |
//! | [`client_session`] | which request an answer belongs to, what may be sent now |
//! | [`server_session`] | which message executes now, what waits, when a session is idle |
//!
//! The crate does not know `openenv-ws`. Time is an argument in nanoseconds of any monotonic clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client_session;
pub mod envelope;
mod error;
pub mod members;
pub mod message;
pub mod reply;
mod scan;
pub mod server_session;

pub use client_session::{Answer, ClientLimits, ClientSession, RequestId};
pub use envelope::{Envelope, Kind, split, split_reply};
pub use error::{EnvelopeError, SessionError};
pub use members::{Observation, observation_members, splice};
pub use message::{Op, begin_request, end_request};
pub use reply::{ReplyKind, begin_extension, begin_reply, end_reply};
pub use scan::MAX_DEPTH;
pub use server_session::{Admit, Incoming, ServerLimits, ServerSession, classify};
