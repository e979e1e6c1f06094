//! What the targets share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`json`] | `serde_json` as the plain reading of a text |
//! | [`memory`] | how much a piece of work allocates |
//! | [`pieces`] | one input, cut as a transport might |
//! | [`wire`] | a stream whose reader knows what is complete after each byte |
#![forbid(unsafe_code)]

pub mod json;
pub mod memory;
pub mod pieces;
pub mod wire;

use openenv_ws::MaskSource;

/// Masks with one key, so that outputs can be compared.
#[derive(Debug)]
pub struct FixedMask;

impl MaskSource for FixedMask {
    fn next_mask(&mut self) -> [u8; 4] {
        [0xA1, 0xB2, 0xC3, 0xD4]
    }
}
