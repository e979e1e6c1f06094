//! One input, cut as a transport might cut it.

use openenv_sim::Random;

/// A seed for pieces of one byte.
pub const BYTE_BY_BYTE: u8 = 0;

/// Cuts `bytes` into pieces of 1 byte to `1 + seed % 32` bytes; none is empty.
pub fn cut(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let (mut random, mut rest, mut pieces) = (Random::new(seed.into()), bytes, Vec::new());
    while !rest.is_empty() {
        let length = 1 + random.up_to_len(usize::from(seed % 32));
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
