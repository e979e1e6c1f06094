//! The event loop's seconds and the machine's nanoseconds.

const NANOSECONDS: f64 = 1e9;

/// `None` for "never": infinity and NaN.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a saturating cast is what is wanted of a clock"
)]
pub(crate) fn nanoseconds(seconds: f64) -> Option<u64> {
    if seconds.is_finite() { Some((seconds * NANOSECONDS) as u64) } else { None }
}

/// The present; a clock without a finite time stands at its start.
pub(crate) fn now_ns(seconds: f64) -> u64 {
    nanoseconds(seconds).unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "a clock is far from 2^53 ns of error")]
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / NANOSECONDS
}
