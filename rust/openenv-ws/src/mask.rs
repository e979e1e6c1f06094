//! Masking of payloads (RFC 6455 §5.3): byte `i` is xor-ed with byte `i % 4` of the key.

use alloc::vec::Vec;

/// Where a client's masking keys come from.
///
/// A key must be unpredictable to whoever chooses the payload (§10.3), so the binding feeds this
/// from the operating system's entropy.
pub trait MaskSource {
    /// The key of the next frame.
    fn next_mask(&mut self) -> [u8; 4];
}

/// The mask source of a server, which masks nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmasked;

impl MaskSource for Unmasked {
    fn next_mask(&mut self) -> [u8; 4] {
        [0; 4]
    }
}

/// Bytes copied before they are unmasked: half of a usual first-level cache.
const BLOCK_BYTES: usize = 16 << 10;

/// Xors `bytes` with `key`, the first byte being number `offset` of its frame's payload.
pub(crate) fn apply(bytes: &mut [u8], key: [u8; 4], offset: usize) {
    let key = rotated(key, offset);
    let wide = u128::from_ne_bytes(repeated(key));
    let (blocks, tail) = bytes.as_chunks_mut::<16>();
    for block in blocks {
        *block = (u128::from_ne_bytes(*block) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in tail.iter_mut().zip(key.into_iter().cycle()) {
        *byte ^= mask;
    }
}

/// Appends `bytes`, unmasked with `key`, to `out`: one way through memory, since each block is
/// still in the cache when it is unmasked.
pub(crate) fn extend_unmasked(out: &mut Vec<u8>, bytes: &[u8], key: [u8; 4], offset: usize) {
    let mut position = offset;
    for block in bytes.chunks(BLOCK_BYTES) {
        let start = out.len();
        out.extend_from_slice(block);
        apply(out.get_mut(start..).unwrap_or_default(), key, position);
        position = position.wrapping_add(block.len());
    }
}

/// The key as seen from payload byte `offset`.
fn rotated(key: [u8; 4], offset: usize) -> [u8; 4] {
    let mut key = key;
    key.rotate_left(offset % 4);
    key
}

fn repeated([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d]
}
