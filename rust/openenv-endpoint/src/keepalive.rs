//! When to ping, and when silence means that the peer is gone.
//!
//! # Theory
//!
//! Anything heard is a sign of life, so a busy connection is never pinged.
//!
//! ```text
//!   Quiet --interval--> Pinged --timeout--> Grace --GRACE_NS--> dead
//!     ^                    |                  |
//!     +------- heard ------+------------------+
//! ```
//!
//! `Grace` exists for this side's own pauses: a loop that was busy runs its timers before it reads
//! what has long arrived, so one more turn of reading is granted before the peer is given up.

/// When to ping and how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "two settings, both the caller's to choose")]
pub struct KeepaliveConfig {
    /// Idle nanoseconds before a ping; `None`: no pings.
    pub interval_ns: Option<u64>,
    /// Silent nanoseconds after a ping before the peer is given up; `None`: never.
    pub timeout_ns: Option<u64>,
}

impl KeepaliveConfig {
    /// No pings at all.
    pub const OFF: Self = Self { interval_ns: None, timeout_ns: None };
}

/// One second: a turn of any loop that still lives.
const GRACE_NS: u64 = 1_000_000_000;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Dead,
    Nothing,
    Ping,
}

#[derive(Debug)]
pub(crate) struct Keepalive {
    config: KeepaliveConfig,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Quiet { since_ns: u64 },
    Pinged { at_ns: u64 },
    Grace { until_ns: u64 },
}

impl Keepalive {
    pub(crate) fn new(config: KeepaliveConfig, now_ns: u64) -> Self {
        Self { config, state: State::Quiet { since_ns: now_ns } }
    }

    pub(crate) fn heard(&mut self, now_ns: u64) {
        self.state = State::Quiet { since_ns: now_ns };
    }

    pub(crate) fn tick(&mut self, now_ns: u64) -> Due {
        if self.next().is_none_or(|due_ns| due_ns > now_ns) {
            return Due::Nothing;
        }
        match (self.state, self.config.timeout_ns) {
            (State::Quiet { .. }, _) | (State::Pinged { .. }, None) => {
                self.state = State::Pinged { at_ns: now_ns };
                Due::Ping
            }
            (State::Pinged { .. }, Some(_)) => {
                self.state = State::Grace { until_ns: now_ns.saturating_add(GRACE_NS) };
                Due::Nothing
            }
            (State::Grace { .. }, _) => Due::Dead,
        }
    }

    pub(crate) fn next(&self) -> Option<u64> {
        let interval_ns = self.config.interval_ns?;
        Some(match (self.state, self.config.timeout_ns) {
            (State::Quiet { since_ns }, _) => since_ns.saturating_add(interval_ns),
            (State::Pinged { at_ns }, timeout_ns) => {
                at_ns.saturating_add(timeout_ns.unwrap_or(interval_ns))
            }
            (State::Grace { until_ns }, _) => until_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const CONFIG: KeepaliveConfig =
        KeepaliveConfig { interval_ns: Some(20 * SECOND), timeout_ns: Some(10 * SECOND) };

    #[test]
    fn a_silent_peer_is_pinged_then_given_up() {
        let mut keepalive = Keepalive::new(CONFIG, 0);

        assert_eq!(Due::Nothing, keepalive.tick(19 * SECOND));
        assert_eq!(Due::Ping, keepalive.tick(20 * SECOND));
        assert_eq!(Some(30 * SECOND), keepalive.next());
        assert_eq!(Due::Nothing, keepalive.tick(30 * SECOND));
        assert_eq!(Due::Nothing, keepalive.tick(30 * SECOND + GRACE_NS - 1));
        assert_eq!(Due::Dead, keepalive.tick(30 * SECOND + GRACE_NS));
    }

    #[test]
    fn a_loop_that_slept_reads_before_it_gives_the_peer_up() {
        let mut keepalive = Keepalive::new(CONFIG, 0);
        assert_eq!(Due::Ping, keepalive.tick(20 * SECOND));
        assert_eq!(Due::Nothing, keepalive.tick(500 * SECOND));

        keepalive.heard(500 * SECOND);

        assert_eq!(Some(520 * SECOND), keepalive.next());
    }

    #[test]
    fn without_a_timeout_it_pings_on_and_on() {
        let config = KeepaliveConfig { timeout_ns: None, ..CONFIG };
        let mut keepalive = Keepalive::new(config, 0);

        assert_eq!(Due::Ping, keepalive.tick(20 * SECOND));
        assert_eq!(Due::Ping, keepalive.tick(40 * SECOND));
        assert_eq!(Some(60 * SECOND), keepalive.next());
    }

    #[test]
    fn switched_off_it_never_wakes_anybody() {
        let mut keepalive = Keepalive::new(KeepaliveConfig::OFF, 0);

        assert_eq!(Due::Nothing, keepalive.tick(u64::MAX));
        assert_eq!(None, keepalive.next());
    }
}
