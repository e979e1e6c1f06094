//! A network in memory: two ends, a link between them with weather, and a clock that is moved.
//!
//! ```text
//!            send ── split ──> [chunk@t1] [chunk@t2] [eof@t2] ── join ──> receive
//!   Left                                                                         Right
//!         receive <── join ── [lost@t3] [chunk@t1] <───────────── split ── send
//! ```
//!
//! The link keeps what a byte stream promises (order, no loss before a cut) and breaks everything
//! that it does not: it splits and joins reads anywhere, delays them, and is cut at any byte, with
//! or without telling. It knows bytes only. Everything follows from one seed, so a failing case is
//! run again by its number.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod link;
mod random;
mod run;

pub use clock::Clock;
pub use link::{Arrival, Cut, CutKind, End, Link, Weather};
pub use random::Random;
pub use run::{Peer, Stop, run_until};
