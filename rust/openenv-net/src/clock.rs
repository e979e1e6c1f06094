//! The clock of a machine that is running.

use std::sync::LazyLock;
use std::time::Instant;

/// Nanoseconds since the first call; never goes back.
#[expect(clippy::disallowed_methods, reason = "this is the driver's clock")]
pub fn monotonic_ns() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
