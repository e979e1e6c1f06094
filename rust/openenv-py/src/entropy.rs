//! Masking keys from the operating system's entropy (RFC 6455 §5.3, §10.3), a block at a time.

use std::sync::{Mutex, PoisonError};

use openenv_endpoint::MaskSource;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

const BLOCK_BYTES: usize = 4096;

static BLOCK: Mutex<Block> = Mutex::new(Block { bytes: [0; BLOCK_BYTES], used: BLOCK_BYTES });

#[derive(Debug)]
struct Block {
    bytes: [u8; BLOCK_BYTES],
    used: usize,
}

/// The one source of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entropy;

impl MaskSource for Entropy {
    fn next_mask(&mut self) -> [u8; 4] {
        let mut block = BLOCK.lock().unwrap_or_else(PoisonError::into_inner);
        if block.used + 4 > BLOCK_BYTES {
            // A system that gave a nonce when the endpoint was made does not fail later; if it
            // did, keys would repeat, which weakens a proxy's defence and nothing else.
            let _ = getrandom::fill(&mut block.bytes);
            block.used = 0;
        }
        let used = block.used;
        block.used += 4;
        let key = block.bytes.get(used..used + 4);
        key.and_then(|key| key.try_into().ok()).unwrap_or_default()
    }
}

/// For a forked child: parent and child must not use the same keys.
#[pyfunction]
pub(crate) fn forget_entropy() {
    BLOCK.lock().unwrap_or_else(PoisonError::into_inner).used = BLOCK_BYTES;
}

/// Sixteen random bytes for the upgrade's key.
pub(crate) fn nonce() -> Result<[u8; 16], PyErr> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| PyOSError::new_err(error.to_string()))?;
    Ok(nonce)
}
