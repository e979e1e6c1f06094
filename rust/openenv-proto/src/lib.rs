//! Placeholder of `openenv-proto`.
#![no_std]
#![forbid(unsafe_code)]
