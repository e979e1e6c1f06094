//! Placeholder of `openenv-endpoint`.
#![no_std]
#![forbid(unsafe_code)]
