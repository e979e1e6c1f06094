//! The clock of a machine that is running.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since some moment of the machine's past; never goes back.
#[expect(clippy::cast_sign_loss, reason = "it starts at zero")]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
