//! UTF-8 that arrives in pieces (RFC 6455 §8.1), refused at the first byte that cannot be right.
//!
//! State: the one to three bytes at the end of the last piece that begin a character. They are
//! completed byte by byte; everything else is `core::str::from_utf8` on the piece itself.

use core::str;

use crate::error::Error;

/// Checks a text message piece by piece.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Utf8Stream {
    partial: [u8; 4],
    partial_len: usize,
}

impl Utf8Stream {
    /// Checks the next piece.
    ///
    /// # Errors
    /// [`Error::InvalidUtf8`] as soon as no continuation could make the text valid.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<(), Error> {
        let rest = self.complete_partial(piece)?;
        let Err(error) = str::from_utf8(rest) else { return Ok(()) };
        if error.error_len().is_some() {
            return Err(Error::InvalidUtf8);
        }
        self.keep(rest.get(error.valid_up_to()..).unwrap_or_default());
        Ok(())
    }

    /// Checks that the text does not end inside a character.
    ///
    /// # Errors
    /// [`Error::InvalidUtf8`] if it does.
    pub(crate) const fn finish(&self) -> Result<(), Error> {
        if self.partial_len == 0 { Ok(()) } else { Err(Error::InvalidUtf8) }
    }

    /// Completes the character begun by an earlier piece; returns what follows it.
    fn complete_partial<'p>(&mut self, piece: &'p [u8]) -> Result<&'p [u8], Error> {
        let mut rest = piece;
        while self.partial_len > 0 {
            let Some((&byte, after)) = rest.split_first() else { break };
            rest = after;
            self.push(byte)?;
        }
        Ok(rest)
    }

    /// Adds one byte to the partial character; empties it when the character is complete.
    fn push(&mut self, byte: u8) -> Result<(), Error> {
        // A partial character has at most 3 bytes, so the slot exists.
        if let Some(slot) = self.partial.get_mut(self.partial_len) {
            *slot = byte;
            self.partial_len += 1;
        }
        match str::from_utf8(self.partial.get(..self.partial_len).unwrap_or_default()) {
            Ok(_) => self.partial_len = 0,
            Err(error) if error.error_len().is_some() => return Err(Error::InvalidUtf8),
            Err(_) => {}
        }
        Ok(())
    }

    fn keep(&mut self, begun: &[u8]) {
        debug_assert!(begun.len() < 4, "an unfinished character has one to three bytes");
        for (slot, &byte) in self.partial.iter_mut().zip(begun) {
            *slot = byte;
        }
        self.partial_len = begun.len();
    }
}
