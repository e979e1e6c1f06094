//! The upgrade from HTTP/1.1 to WebSocket (RFC 6455 §4), both sides.
//!
//! ```text
//!   ClientHandshake::new --request()--> wire --> ServerHandshake::receive --> Request
//!   Upgraded <-- ClientHandshake::receive <-- wire <-- ServerHandshake::accept / reject
//! ```
//!
//! Each side buffers until the blank line, bounded by `Limits::max_header_bytes`, and judges the
//! head once. What follows the head is handed on as `rest`: the first bytes of the connection.

mod client;
mod error;
mod head;
mod server;

pub use client::{ClientHandshake, Upgraded};
pub use error::HandshakeError;
pub use server::{Request, ServerHandshake};
