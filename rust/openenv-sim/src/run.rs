//! Runs two peers against each other on a link until nothing is left to happen.

use alloc::vec::Vec;

use crate::{
    clock::Clock,
    link::{Arrival, End, Link},
};

/// A machine at one end: bytes and time in, bytes and a timer out.
pub trait Peer {
    /// Takes one arrival; appends what to write to `out`.
    fn receive(&mut self, arrival: Arrival, now_ns: u64, out: &mut Vec<u8>);

    /// Runs what is due; appends what to write to `out`. Called once at the start too.
    fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// When [`Self::tick`] wants to be called next. After a tick it must lie ahead.
    fn next_timeout_ns(&self) -> Option<u64>;

    /// The peer will write no more, once what it wrote is sent.
    fn is_finished(&self) -> bool;
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "tests match on each")]
pub enum Stop {
    /// The next event lies behind the deadline.
    Deadline,
    /// Nothing travels and no timer is set.
    Quiet,
    /// A peer's timer did not move on, or the peers talk without end and without time passing.
    Stuck,
}

/// Rounds without the clock moving: far above any exchange that a test has in one instant.
const MAX_ROUNDS_AN_INSTANT: u32 = 10_000;

/// Runs `left` and `right` until `deadline_ns` at most; moves the clock from event to event.
pub fn run_until(
    deadline_ns: u64,
    clock: &mut Clock,
    link: &mut Link,
    left: &mut dyn Peer,
    right: &mut dyn Peer,
) -> Stop {
    let mut rounds = 0;
    loop {
        serve(End::Left, left, link, clock.now_ns());
        serve(End::Right, right, link, clock.now_ns());
        let timers = left.next_timeout_ns().into_iter().chain(right.next_timeout_ns());
        let Some(next_ns) = timers.chain(link.next_arrival_ns()).min() else {
            return Stop::Quiet;
        };
        if next_ns > deadline_ns {
            clock.advance_to(deadline_ns);
            return Stop::Deadline;
        }
        rounds = if next_ns > clock.now_ns() { 0 } else { rounds + 1 };
        if rounds > MAX_ROUNDS_AN_INSTANT {
            return Stop::Stuck;
        }
        clock.advance_to(next_ns);
    }
}

/// Hands `peer` what has arrived and its timers, and sends what it wrote.
fn serve(end: End, peer: &mut dyn Peer, link: &mut Link, now_ns: u64) {
    let mut out = Vec::new();
    while let Some(arrival) = link.receive(end, now_ns) {
        peer.receive(arrival, now_ns, &mut out);
    }
    peer.tick(now_ns, &mut out);
    link.send(end, &out, now_ns);
    if peer.is_finished() {
        link.finish(end, now_ns);
    }
}
