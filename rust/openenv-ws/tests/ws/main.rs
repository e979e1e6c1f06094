//! The crate from outside, as its callers see it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot build its input must fail"
)]

mod connection;
mod errors;
mod handshake;
mod properties;
mod support;
