//! Many sockets behind one descriptor that an event loop watches.
//!
//! # Theory
//!
//! An event loop in Python spends several microseconds a socket and wake-up: a callback object, a
//! call, a `bytes`. Here the loop watches one descriptor, the [`Poller`]'s *door*, and one call
//! reads whatever has come on any socket.
//!
//! ```text
//!   event loop ── door ─┬─ prompt ──── an epoll set of sockets
//!                       ├─ patient ─── another, shut while answers are held back
//!                       └─ timer ───── opens the door for it then
//! ```
//!
//! A client with many sessions on a slow server is woken for each answer, and most of what an
//! answer costs is then the wake-up itself. [`Pace`] says for how long answers may be held back so
//! that one wake-up reads several, as network cards do: a twentieth of the round trip, on average.
//!
//! Nothing here knows Python, HTTP or WebSocket. Linux only; elsewhere the crate is empty and
//! connections use the event loop's own transports.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]
#![expect(clippy::std_instead_of_core, reason = "sockets live on std")]

mod clock;
mod pace;
mod poller;
mod socket;

pub use clock::monotonic_ns;
pub use pace::{Pace, RoundTrip};
pub use poller::{Haste, Poller, Ready};
pub use socket::{Received, Socket};
