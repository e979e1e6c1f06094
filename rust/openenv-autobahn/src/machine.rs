//! What a transport drives.

/// Bytes in, bytes out, and at some time over.
pub trait Machine {
    /// Takes what was read; gives what is to be written now.
    fn take(&mut self, input: &[u8]) -> Vec<u8>;

    /// Nothing more is to be read: write the rest and close.
    fn is_over(&self) -> bool;
}
