//! Seeded numbers: splitmix64 (Steele, Lea, Flood: «Fast splittable pseudorandom number
//! generators», OOPSLA 2014). Not for secrets.

/// A stream of numbers that its seed determines.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of `seed`; any seed is good, 0 too.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number of all 64-bit numbers.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of `0..=max`. The bias is below `max / 2^64`.
    pub fn up_to(&mut self, max: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * (u128::from(max) + 1);
        // Below 2^64, because the first factor is.
        u64::try_from(wide >> 64).unwrap_or(max)
    }

    /// A number of `0..=max`.
    pub fn up_to_len(&mut self, max: usize) -> usize {
        let wide = u64::try_from(max).unwrap_or(u64::MAX);
        usize::try_from(self.up_to(wide)).unwrap_or(max)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u8) -> bool {
        self.up_to(99) < u64::from(percent)
    }

    /// Fills `bytes`, as a source of masks or nonces.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.iter_mut().zip(self.next_u64().to_le_bytes()).for_each(|(to, from)| *to = from);
        }
    }
}
