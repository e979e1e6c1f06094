//! Sockets around the pure machines, so that the Autobahn suite can talk to them.
//!
//! ```text
//!   echo_server     ServerHandshake, Connection   every message comes back as it was sent
//!   echo_client     ClientHandshake, Connection   asks the suite for its cases, echoes in each
//!   echo_endpoint   ServerEndpoint                text comes back; the whole classic server machine
//! ```
//!
//! The endpoint knows no binary replies (the classic wire has none), hence the first beside it.
//! Blocking std TCP, a thread a connection: a driver here shall be plain, not fast.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "drivers of a test suite: sockets, threads and the clock are their work"
)]

mod echo;
mod endpoint;
mod machine;
mod transport;

pub use echo::{accept, ask, run};
pub use endpoint::{Endpoint, serve_endpoint};
pub use machine::Machine;
pub use transport::{pump, serve};
