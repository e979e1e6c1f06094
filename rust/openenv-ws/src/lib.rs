//! Placeholder of `openenv-ws`.
#![no_std]
#![forbid(unsafe_code)]
