//! Counts what is allocated on the way, so that a target can bound it.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Does `work`; gives its result and all bytes that it allocated, freed ones included.
pub fn allocated_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let region = Region::new(GLOBAL);
    let result = work();
    (result, region.change().bytes_allocated)
}
