//! Time that only a test moves.

/// A monotonic clock in nanoseconds, starting at 0.
#[derive(Debug, Default)]
pub struct Clock {
    now_ns: u64,
}

impl Clock {
    /// A clock at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves on by `by_ns`; stops at the end of time.
    pub fn advance(&mut self, by_ns: u64) {
        self.now_ns = self.now_ns.saturating_add(by_ns);
    }

    /// Moves on to `at_ns`. An instant that has passed leaves the clock where it is.
    pub fn advance_to(&mut self, at_ns: u64) {
        self.now_ns = self.now_ns.max(at_ns);
    }

    /// The present.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }
}
