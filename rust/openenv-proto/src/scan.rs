//! A validating reader of JSON text that builds no values: RFC 8259, in slices of the text.
//!
//! Hand-written rather than `jiter`'s skip: this one is `no_std`, checks UTF-8, tells depth exactly
//! and lets a caller look into one member on the way, so that a reply is read once and not twice.
//! `tests/envelope.rs` holds it to `serde_json`.
//!
//! Two differences to Python's `json`, both decided again by the caller's slow path: nesting
//! deeper than [`MAX_DEPTH`] and escaped lone surrogates are refused.

use alloc::{borrow::Cow, string::String};

use crate::error::EnvelopeError;

/// Containers that may nest inside one member's value.
///
/// Equal to the encoder's bound and within `jiter`'s, so that what one side sends the other reads,
/// and low enough for plain recursion. Python's `json` dies near 1,000, `serde_json` stops at 128.
pub const MAX_DEPTH: usize = 200;

/// Why the reader stopped; it stays where it did. One byte, so that the steps of the scan return in
/// a register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    NotJson,
    TooDeep,
}

pub(crate) type Outcome<T> = Result<T, Refusal>;

/// A place in a text.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    /// What is still to be read. Begins on a character boundary whenever a value begins or ends:
    /// those are ASCII. Kept as a slice, not an index: moving on needs no arithmetic to check.
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads a text that is one object, see [`Self::object`].
    ///
    /// # Errors
    /// `NotUtf8`, `NotJson` and `DepthExceeded` rule over `NotAnObject`: all is read first.
    pub(crate) fn read_object(
        text: &'a [u8],
        member: impl FnMut(&mut Self, &str) -> Outcome<()>,
    ) -> Result<(), EnvelopeError> {
        let text = core::str::from_utf8(text)
            .map_err(|error| EnvelopeError::NotUtf8 { position: error.valid_up_to() })?;
        let mut reader = Self { text, rest: text.as_bytes() };
        let outcome = reader.document(member);
        let position = text.len() - reader.rest.len();
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err(EnvelopeError::NotAnObject),
            Err(Refusal::NotJson) => Err(EnvelopeError::NotJson { position }),
            Err(Refusal::TooDeep) => Err(EnvelopeError::DepthExceeded { position }),
        }
    }

    /// The value here is an object.
    pub(crate) fn is_object(&self) -> bool {
        self.rest.first() == Some(&b'{')
    }

    /// Passes over one value and gives its exact text. `depth` containers stand around it that
    /// count towards [`MAX_DEPTH`].
    pub(crate) fn value(&mut self, depth: usize) -> Outcome<&'a str> {
        let start = self.rest;
        self.skip_value(depth)?;
        Ok(self.since(start))
    }

    /// Reads an object and gives its exact text. `member` is called at each member's value,
    /// duplicates included, with the decoded key, and must read the value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Outcome<()>,
    ) -> Outcome<&'a str> {
        let start = self.rest;
        self.members(|reader, key| member(reader, &unescape(key)))?;
        Ok(self.since(start))
    }

    /// Reads the whole text; false if it is no object.
    fn document(&mut self, member: impl FnMut(&mut Self, &str) -> Outcome<()>) -> Outcome<bool> {
        self.skip_blanks();
        let is_object = self.is_object();
        if is_object {
            self.object(member)?;
        } else {
            self.skip_value(0)?;
        }
        self.skip_blanks();
        if self.rest.is_empty() { Ok(is_object) } else { Err(Refusal::NotJson) }
    }

    fn skip_value(&mut self, depth: usize) -> Outcome<()> {
        match self.rest.first() {
            Some(b'"') => self.skip_string(),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b'{' | b'[') if depth == MAX_DEPTH => Err(Refusal::TooDeep),
            Some(b'{') => self.members(|reader, _| reader.skip_value(depth + 1)),
            Some(b'[') => self.skip_array(depth + 1),
            Some(b't') => self.skip_word(b"true"),
            Some(b'f') => self.skip_word(b"false"),
            Some(b'n') => self.skip_word(b"null"),
            _ => Err(Refusal::NotJson),
        }
    }

    /// From `{` to behind `}`. `member` gets the raw key, without quotes.
    fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a str) -> Outcome<()>,
    ) -> Outcome<()> {
        if !self.opens(b'}') {
            return Ok(());
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            if !self.goes_on(b'}')? {
                return Ok(());
            }
        }
    }

    /// From the quote of a key to its value.
    fn key(&mut self) -> Outcome<&'a str> {
        let [b'"', start @ ..] = self.rest else {
            return Err(Refusal::NotJson);
        };
        self.skip_string()?;
        let key = self.since(start).strip_suffix('"').unwrap_or_default();
        self.skip_blanks();
        if !self.eat(b':') {
            return Err(Refusal::NotJson);
        }
        self.skip_blanks();
        Ok(key)
    }

    /// From `[` to behind `]`.
    fn skip_array(&mut self, depth: usize) -> Outcome<()> {
        if !self.opens(b']') {
            return Ok(());
        }
        loop {
            self.skip_value(depth)?;
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    /// Passes over an opening bracket. False if `close` follows: then it is passed over as well.
    fn opens(&mut self, close: u8) -> bool {
        self.skip(1);
        self.skip_blanks();
        !self.eat(close)
    }

    /// Passes over a comma (true) or `close` (false), and the blanks around it.
    fn goes_on(&mut self, close: u8) -> Outcome<bool> {
        self.skip_blanks();
        if self.eat(b',') {
            self.skip_blanks();
            return Ok(true);
        }
        if self.eat(close) { Ok(false) } else { Err(Refusal::NotJson) }
    }

    /// From the opening quote to behind the closing one.
    fn skip_string(&mut self) -> Outcome<()> {
        self.skip(1);
        loop {
            self.skip(plain_prefix(self.rest));
            match self.rest {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return Ok(());
                }
                [b'\\', ..] => {
                    let (_, length) = decode_escape(self.rest).ok_or(Refusal::NotJson)?;
                    self.skip(length);
                }
                _ => return Err(Refusal::NotJson),
            }
        }
    }

    fn skip_number(&mut self) -> Outcome<()> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.skip_digits()?;
        }
        // Most numbers end here: one look decides.
        if !matches!(self.rest, [b'.' | b'E' | b'e', ..]) {
            return Ok(());
        }
        if self.eat(b'.') {
            self.skip_digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            self.skip_digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    fn skip_digits(&mut self) -> Outcome<()> {
        let [b'0'..=b'9', rest @ ..] = self.rest else {
            return Err(Refusal::NotJson);
        };
        let mut rest = rest;
        while let [b'0'..=b'9', behind @ ..] = rest {
            rest = behind;
        }
        self.rest = rest;
        Ok(())
    }

    fn skip_word(&mut self, word: &[u8]) -> Outcome<()> {
        self.rest = self.rest.strip_prefix(word).ok_or(Refusal::NotJson)?;
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Passes over `length` bytes, which are there.
    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    /// The text from `start`, an earlier `rest`, to here.
    fn since(&self, start: &[u8]) -> &'a str {
        // Both ends are boundaries, see `rest`.
        self.text
            .get(self.text.len() - start.len()..self.text.len() - self.rest.len())
            .unwrap_or_default()
    }
}

/// Decodes `value`, the text of a value that was read, if it is a string.
pub(crate) fn decode_string(value: &str) -> Option<Cow<'_, str>> {
    value.strip_prefix('"')?.strip_suffix('"').map(unescape)
}

/// Resolves the escapes of a string that was read. Borrows if there are none.
fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let (mut decoded, mut rest) = (String::with_capacity(raw.len()), raw);
    while let Some(place) = rest.find('\\') {
        let (plain, escape) = rest.split_at(place);
        decoded.push_str(plain);
        let Some((character, length)) = decode_escape(escape.as_bytes()) else {
            debug_assert!(false, "the reader has passed over this escape");
            break;
        };
        decoded.push(character);
        rest = escape.get(length..).unwrap_or_default();
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// The character that the escape at the start of `text` stands for, and the escape's length.
/// `None` for an unknown escape and for half of a surrogate pair.
fn decode_escape(text: &[u8]) -> Option<(char, usize)> {
    let character = match text.get(1)? {
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return decode_unicode_escape(text),
        _ => return None,
    };
    Some((character, 2))
}

fn decode_unicode_escape(text: &[u8]) -> Option<(char, usize)> {
    let first = hex_code(text)?;
    if !(0xd800..0xdc00).contains(&first) {
        // The second half of a pair is no character either.
        return char::from_u32(first).map(|character| (character, 6));
    }
    let second = hex_code(text.get(6..)?).filter(|code| (0xdc00..0xe000).contains(code))?;
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).map(|character| (character, 12))
}

/// The number in `\uXXXX` at the start of `text`.
fn hex_code(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    digits
        .iter()
        .try_fold(0, |code, digit| char::from(*digit).to_digit(16).map(|digit| code * 16 + digit))
}

/// How many bytes of `text` stand before the first quote, backslash or control character.
fn plain_prefix(text: &[u8]) -> usize {
    let mut length = 0;
    let (words, tail) = text.as_chunks::<8>();
    for word in words {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return length + (special.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let is_plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    length + tail.iter().take_while(is_plain).count()
}

/// Marks the high bit of bytes that are a quote, a backslash or below 0x20. Bytes above the lowest
/// mark may be marked wrongly (a borrow), so only the lowest counts. Hacker's Delight §6-1.
const fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    const QUOTES: u64 = ONES * b'"' as u64;
    const BACKSLASHES: u64 = ONES * b'\\' as u64;
    const BLANKS: u64 = ONES * 0x20;
    let quote = (word ^ QUOTES).wrapping_sub(ONES) & !(word ^ QUOTES);
    let backslash = (word ^ BACKSLASHES).wrapping_sub(ONES) & !(word ^ BACKSLASHES);
    let control = word.wrapping_sub(BLANKS) & !word;
    (quote | backslash | control) & HIGHS
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::plain_prefix;

    #[test]
    fn the_fast_search_agrees_with_the_plain_one_for_each_byte_at_each_place() {
        let plain = |text: &[u8]| {
            let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
            text.iter().position(is_special).unwrap_or(text.len())
        };
        for first in 0..=255 {
            for place in 0..20 {
                for second in [0, 0x1f, b' ', b'!', b'"', b'#', b'[', b'\\', b']', 0x80, 0xff] {
                    let mut text: Vec<u8> = vec![b'a'; 20];
                    text[place] = first;
                    text[(place + 1) % 20] = second;

                    assert_eq!(plain(&text), plain_prefix(&text), "{text:?}");
                }
            }
        }
    }
}
