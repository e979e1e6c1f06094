//! UTF-8 that arrives in pieces (RFC 6455 §8.1), refused at the first byte that cannot be right.
//!
//! State: the one to three bytes at the end of the last piece that begin a character. They are
//! completed byte by byte; everything else is `core::str::from_utf8` on the piece itself.

use core::str;

use crate::error::Error;

/// Whether a whole text is UTF-8. ASCII, the usual case, is recognised first: that test takes
/// wide steps from any address, while `from_utf8` goes by bytes up to an aligned one.
#[inline]
pub(crate) fn is_utf8(text: &[u8]) -> bool {
    text.is_ascii() || str::from_utf8(text).is_ok()
}

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
        if rest.is_ascii() {
            return Ok(());
        }
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::{collection::vec as bytes_of, prelude::*};

    use super::*;

    /// The plain twin: whether some text begins with `prefix`.
    fn could_continue(prefix: &[u8]) -> bool {
        str::from_utf8(prefix).err().is_none_or(|error| error.error_len().is_none())
    }

    /// Feeds byte by byte and compares each verdict with the twin.
    fn check_byte_by_byte(bytes: &[u8]) {
        let mut stream = Utf8Stream::default();
        for end in 1..=bytes.len() {
            let verdict = stream.feed(&bytes[end - 1..end]);

            assert_eq!(could_continue(&bytes[..end]), verdict.is_ok(), "{bytes:?} up to {end}");

            if verdict.is_err() {
                return;
            }
        }
        assert_eq!(str::from_utf8(bytes).is_ok(), stream.finish().is_ok(), "{bytes:?}");
    }

    #[test]
    fn all_sequences_of_boundary_bytes_are_judged_as_by_the_standard_library() {
        const BOUNDARIES: [u8; 23] = [
            0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1,
            0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF,
        ];
        for a in BOUNDARIES {
            for b in BOUNDARIES {
                for c in BOUNDARIES {
                    for d in BOUNDARIES {
                        check_byte_by_byte(&[a, b, c, d]);
                    }
                }
            }
        }
    }

    #[test]
    fn surrogates_and_overlong_forms_fail_at_their_second_byte() {
        for bad in [b"\xED\xA0", b"\xE0\x80", b"\xF0\x80", b"\xF4\x90"] {
            let mut stream = Utf8Stream::default();

            assert_eq!(Ok(()), stream.feed(&bad[..1]));
            assert_eq!(Err(Error::InvalidUtf8), stream.feed(&bad[1..]));
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_verdict(
            text in "\\PC{0,20}",
            noise in bytes_of(any::<u8>(), 0..3),
            at in 0..40_usize,
            sizes in bytes_of(0..5_usize, 0..60),
        ) {
            let mut bytes = text.into_bytes();
            let at = at.min(bytes.len());
            bytes.splice(at..at, noise);
            let mut stream = Utf8Stream::default();
            let mut rest = &bytes[..];
            let mut verdict = Ok(());
            for size in sizes.into_iter().chain([usize::MAX]) {
                let (piece, after) = rest.split_at(size.min(rest.len()));
                verdict = verdict.and_then(|()| stream.feed(piece));
                rest = after;
            }
            let verdict = verdict.and_then(|()| stream.finish());

            prop_assert_eq!(str::from_utf8(&bytes).is_ok(), verdict.is_ok());
        }

        #[test]
        fn any_bytes_are_judged_byte_by_byte_as_by_the_standard_library(
            bytes in bytes_of(any::<u8>(), 0..12),
        ) {
            let bytes: Vec<u8> = bytes;
            check_byte_by_byte(&bytes);
        }
    }
}
