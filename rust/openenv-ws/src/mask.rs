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

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::{collection::vec as bytes_of, prelude::*};

    use super::*;

    const KEY: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

    /// The plain twin: RFC 6455 §5.3 word by word.
    fn apply_plain(bytes: &mut [u8], key: [u8; 4], offset: usize) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte ^= key[(offset + i) % 4];
        }
    }

    fn sample(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + 3).to_le_bytes()[0]).collect()
    }

    #[test]
    fn fast_mask_agrees_with_plain_twin_at_every_length_and_alignment() {
        for len in 0..=67 {
            for alignment in 0..16 {
                for offset in 0..4 {
                    let mut expected = sample(alignment + len);
                    let mut actual = expected.clone();
                    apply_plain(&mut expected[alignment..], KEY, offset);
                    apply(&mut actual[alignment..], KEY, offset);

                    assert_eq!(expected, actual, "{len} {alignment} {offset}");
                }
            }
        }
    }

    #[test]
    fn copying_unmask_agrees_with_plain_twin_around_its_block() {
        for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 5] {
            for offset in 0..4 {
                let mut expected = sample(len);
                apply_plain(&mut expected, KEY, offset);
                let mut actual = vec![9];
                extend_unmasked(&mut actual, &sample(len), KEY, offset);

                assert_eq!((9, &expected[..]), (actual[0], &actual[1..]), "{len} {offset}");
            }
        }
    }

    #[test]
    fn hello_of_the_standard_is_masked_as_printed() {
        let mut bytes = *b"Hello";
        apply(&mut bytes, KEY, 0);

        assert_eq!([0x7F, 0x9F, 0x4D, 0x51, 0x58], bytes);
    }

    proptest! {
        #[test]
        fn masking_twice_changes_nothing(
            bytes in bytes_of(any::<u8>(), 0..200),
            key: [u8; 4],
            offset in 0..1000_usize,
        ) {
            let mut twice = bytes.clone();
            apply(&mut twice, key, offset);
            apply(&mut twice, key, offset);

            prop_assert_eq!(bytes, twice);
        }

        #[test]
        fn masking_in_pieces_equals_masking_at_once(
            bytes in bytes_of(any::<u8>(), 0..200),
            key: [u8; 4],
            cut in 0..200_usize,
        ) {
            let mut expected = bytes.clone();
            apply(&mut expected, key, 0);
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            let mut actual = Vec::new();
            extend_unmasked(&mut actual, head, key, 0);
            extend_unmasked(&mut actual, tail, key, head.len());

            prop_assert_eq!(expected, actual);
        }
    }
}
