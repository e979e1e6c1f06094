//! A stream between two machines. Whoever writes notes what each write means; whoever reads some
//! bytes learns which notes are complete, wherever the reads are cut.

use std::collections::VecDeque;

/// One direction of a connection.
#[derive(Debug)]
pub struct Wire<N> {
    bytes: Vec<u8>,
    read: usize,
    notes: VecDeque<(usize, N)>,
}

impl<N> Default for Wire<N> {
    fn default() -> Self {
        Self { bytes: Vec::new(), read: 0, notes: VecDeque::new() }
    }
}

impl<N> Wire<N> {
    /// Appends `bytes`, which mean `note` once they have all arrived.
    pub fn write(&mut self, bytes: &[u8], note: N) {
        self.bytes.extend_from_slice(bytes);
        self.notes.push_back((self.bytes.len(), note));
    }

    /// Takes up to `count` bytes, and the notes that they complete.
    pub fn read(&mut self, count: usize) -> (Vec<u8>, Vec<N>) {
        let end = (self.read + count).min(self.bytes.len());
        let taken = self.bytes[self.read..end].to_vec();
        self.read = end;
        let mut complete = Vec::new();
        while let Some((_, note)) = self.notes.pop_front_if(|(at, _)| *at <= end) {
            complete.push(note);
        }
        (taken, complete)
    }

    /// Everything has been read.
    pub fn is_empty(&self) -> bool {
        self.read == self.bytes.len()
    }
}
