//! Placeholder of `openenv-sim`.
#![no_std]
#![forbid(unsafe_code)]
