//! The frame header (RFC 6455 §5.2), parsed and written.
//!
//! ```text
//!   byte 0: FIN RSV1 RSV2 RSV3 opcode(4)   byte 1: MASK length(7)
//!   then: length(16) if 126, length(64) if 127; then: key(32) if MASK
//! ```

use alloc::vec::Vec;

use crate::{error::Error, mask};

/// Longest payload of a control frame in bytes (§5.5).
pub(crate) const MAX_CONTROL_BYTES: usize = 125;
/// The seven-bit length that says: a 16-bit length follows.
const LENGTH_IN_16_BITS: u8 = 0x7E;
/// The seven-bit length that says: a 64-bit length follows.
const LENGTH_IN_64_BITS: u8 = 0x7F;
/// Longest frame header in bytes: 2, a 64-bit length and a key.
pub(crate) const MAX_HEADER_BYTES: usize = 14;

/// Which end of the connection this side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a connection has two ends")]
pub enum Role {
    /// Sent the upgrade request; masks what it sends.
    Client,
    /// Answered the upgrade request; masks nothing.
    Server,
}

/// How the payload of a message is to be read (§5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "RFC 6455 has two kinds; others are reserved")]
pub enum MessageKind {
    /// Any bytes.
    Binary,
    /// UTF-8.
    Text,
}

/// The opcodes with a meaning, in the standard's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xA,
}

impl Opcode {
    pub(crate) const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }

    /// The kind of message that this opcode begins.
    pub(crate) const fn message_kind(self) -> Option<MessageKind> {
        match self {
            Self::Text => Some(MessageKind::Text),
            Self::Binary => Some(MessageKind::Binary),
            Self::Continuation | Self::Close | Self::Ping | Self::Pong => None,
        }
    }

    const fn parse(bits: u8) -> Result<Self, Error> {
        match bits {
            0x0 => Ok(Self::Continuation),
            0x1 => Ok(Self::Text),
            0x2 => Ok(Self::Binary),
            0x8 => Ok(Self::Close),
            0x9 => Ok(Self::Ping),
            0xA => Ok(Self::Pong),
            _ => Err(Error::ReservedOpcode),
        }
    }
}

impl From<MessageKind> for Opcode {
    fn from(kind: MessageKind) -> Self {
        match kind {
            MessageKind::Binary => Self::Binary,
            MessageKind::Text => Self::Text,
        }
    }
}

/// One frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) is_final: bool,
    pub(crate) opcode: Opcode,
    pub(crate) key: Option<[u8; 4]>,
    pub(crate) payload_bytes: u64,
}

impl FrameHeader {
    /// Parses the header at the start of `input`, sent by the peer of a `role`.
    ///
    /// Each check is made as soon as its byte is there, in the order of the bytes, so the verdict
    /// does not depend on how the input was split. Returns the header and its length in bytes, or
    /// `None` if more bytes are needed.
    ///
    /// # Errors
    /// What the peer did wrong.
    #[inline]
    pub(crate) fn parse(input: &[u8], role: Role) -> Result<Option<(Self, usize)>, Error> {
        let Some((&first, after)) = input.split_first() else { return Ok(None) };
        let (is_final, opcode) = parse_first(first)?;
        let Some((&second, after)) = after.split_first() else { return Ok(None) };
        let (is_masked, short_length) = parse_second(second, opcode, role)?;
        let Some((payload_bytes, length_bytes)) = parse_length(short_length, after)? else {
            return Ok(None);
        };
        if !is_masked {
            let header = Self { is_final, opcode, key: None, payload_bytes };
            return Ok(Some((header, 2 + length_bytes)));
        }
        let key = after.get(length_bytes..).and_then(<[u8]>::first_chunk::<4>);
        let Some(&key) = key else { return Ok(None) };
        let header = Self { is_final, opcode, key: Some(key), payload_bytes };
        Ok(Some((header, 2 + length_bytes + 4)))
    }

    /// Writes the header into the end of `room`; returns its length in bytes.
    ///
    /// `room` has [`MAX_HEADER_BYTES`], or 4 fewer where no frame has a key.
    pub(crate) fn write_right_aligned(&self, room: &mut [u8]) -> usize {
        let (bytes, used) = self.encode();
        let start = room.len().saturating_sub(used);
        for (slot, byte) in room.iter_mut().skip(start).zip(bytes) {
            *slot = byte;
        }
        used
    }

    /// Appends the header to `out`.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        let (bytes, used) = self.encode();
        out.extend(bytes.into_iter().take(used));
    }

    fn encode(&self) -> ([u8; MAX_HEADER_BYTES], usize) {
        let mut writer = HeaderWriter { bytes: [0; MAX_HEADER_BYTES], used: 0 };
        let mask_bit = if self.key.is_some() { 0x80 } else { 0 };
        writer.put(&[if self.is_final { 0x80 } else { 0 } | self.opcode as u8]);
        match (u8::try_from(self.payload_bytes), u16::try_from(self.payload_bytes)) {
            (Ok(length @ ..=125), _) => writer.put(&[mask_bit | length]),
            (_, Ok(length)) => {
                writer.put(&[mask_bit | LENGTH_IN_16_BITS]);
                writer.put(&length.to_be_bytes());
            }
            (_, Err(_)) => {
                writer.put(&[mask_bit | LENGTH_IN_64_BITS]);
                writer.put(&self.payload_bytes.to_be_bytes());
            }
        }
        if let Some(key) = self.key {
            writer.put(&key);
        }
        (writer.bytes, writer.used)
    }
}

/// Appends a whole frame to `out`, copying and masking the payload.
pub(crate) fn append_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    payload: &[u8],
    key: Option<[u8; 4]>,
) {
    let payload_bytes = payload.len() as u64;
    let header = FrameHeader { is_final: true, opcode, key, payload_bytes };
    out.reserve(MAX_HEADER_BYTES + payload.len());
    header.append(out);
    match key {
        Some(key) => mask::extend_unmasked(out, payload, key, 0),
        None => out.extend_from_slice(payload),
    }
}

struct HeaderWriter {
    bytes: [u8; MAX_HEADER_BYTES],
    used: usize,
}

impl HeaderWriter {
    fn put(&mut self, bytes: &[u8]) {
        for (slot, &byte) in self.bytes.iter_mut().skip(self.used).zip(bytes) {
            *slot = byte;
        }
        self.used += bytes.len();
    }
}

#[inline]
fn parse_first(byte: u8) -> Result<(bool, Opcode), Error> {
    if byte & 0x70 != 0 {
        return Err(Error::ReservedBits);
    }
    let opcode = Opcode::parse(byte & 0x0F)?;
    let is_final = byte & 0x80 != 0;
    if opcode.is_control() && !is_final {
        return Err(Error::FragmentedControl);
    }
    Ok((is_final, opcode))
}

#[inline]
fn parse_second(byte: u8, opcode: Opcode, role: Role) -> Result<(bool, u8), Error> {
    let is_masked = byte & 0x80 != 0;
    match (role, is_masked) {
        (Role::Client, true) => return Err(Error::MaskedFrame),
        (Role::Server, false) => return Err(Error::UnmaskedFrame),
        (Role::Client, false) | (Role::Server, true) => {}
    }
    let short_length = byte & 0x7F;
    if opcode.is_control() && usize::from(short_length) > MAX_CONTROL_BYTES {
        return Err(Error::ControlTooLong);
    }
    Ok((is_masked, short_length))
}

/// The payload length and the number of extra bytes it took.
#[inline]
fn parse_length(short_length: u8, after: &[u8]) -> Result<Option<(u64, usize)>, Error> {
    match short_length {
        LENGTH_IN_64_BITS => parse_long_length(after),
        LENGTH_IN_16_BITS => {
            let Some(&bytes) = after.first_chunk::<2>() else { return Ok(None) };
            let length = u16::from_be_bytes(bytes);
            if length < LENGTH_IN_16_BITS.into() {
                Err(Error::NonMinimalLength)
            } else {
                Ok(Some((length.into(), 2)))
            }
        }
        short => Ok(Some((short.into(), 0))),
    }
}

fn parse_long_length(after: &[u8]) -> Result<Option<(u64, usize)>, Error> {
    let Some(&bytes) = after.first_chunk::<8>() else { return Ok(None) };
    let length = u64::from_be_bytes(bytes);
    if length >> 63 != 0 {
        return Err(Error::LengthTooLarge);
    }
    if u16::try_from(length).is_ok() {
        return Err(Error::NonMinimalLength);
    }
    Ok(Some((length, 8)))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::{collection::vec as bytes_of, prelude::*};

    use super::*;

    fn header(payload_bytes: u64, key: Option<[u8; 4]>) -> FrameHeader {
        FrameHeader { is_final: true, opcode: Opcode::Binary, key, payload_bytes }
    }

    fn appended(header: &FrameHeader) -> Vec<u8> {
        let mut out = Vec::new();
        header.append(&mut out);
        out
    }

    #[test]
    fn lengths_take_their_shortest_form() {
        let cases: [(u64, &[u8]); 7] = [
            (0, &[0x82, 0]),
            (125, &[0x82, 125]),
            (126, &[0x82, 126, 0, 126]),
            (256, &[0x82, 126, 1, 0]),
            (65535, &[0x82, 126, 0xFF, 0xFF]),
            (65536, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
            (u64::MAX >> 1, &[0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ];
        for (length, bytes) in cases {
            assert_eq!(bytes, appended(&header(length, None)));
        }
    }

    #[test]
    fn each_header_is_parsed_as_it_was_written_and_never_from_less() {
        for length in [0, 1, 125, 126, 127, 65535, 65536, 1 << 32, u64::MAX >> 1] {
            for (key, role) in [(None, Role::Client), (Some([1, 2, 3, 4]), Role::Server)] {
                let expected = header(length, key);
                let bytes = appended(&expected);
                for end in 0..bytes.len() {
                    assert_eq!(Ok(None), FrameHeader::parse(&bytes[..end], role));
                }
                assert_eq!(Ok(Some((expected, bytes.len()))), FrameHeader::parse(&bytes, role));
            }
        }
    }

    #[test]
    fn header_lies_right_against_the_payload() {
        let mut room = [0xEE; MAX_HEADER_BYTES];

        assert_eq!(4, header(300, None).write_right_aligned(&mut room));
        assert_eq!([0xEE, 0x82, 126, 1, 44], room[MAX_HEADER_BYTES - 5..]);
    }

    #[test]
    fn each_broken_header_is_named() {
        let cases: [(&[u8], Role, Error); 11] = [
            (&[0xC1], Role::Client, Error::ReservedBits),
            (&[0xA1], Role::Client, Error::ReservedBits),
            (&[0x91], Role::Client, Error::ReservedBits),
            (&[0x83], Role::Client, Error::ReservedOpcode),
            (&[0x8B], Role::Client, Error::ReservedOpcode),
            (&[0x09], Role::Client, Error::FragmentedControl),
            (&[0x89, 126], Role::Client, Error::ControlTooLong),
            (&[0x81, 0x80], Role::Client, Error::MaskedFrame),
            (&[0x81, 0x00], Role::Server, Error::UnmaskedFrame),
            (&[0x82, 126, 0, 125], Role::Client, Error::NonMinimalLength),
            (&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], Role::Client, Error::LengthTooLarge),
        ];
        for (bytes, role, error) in cases {
            assert_eq!(Err(error), FrameHeader::parse(bytes, role), "{bytes:?}");
        }
        let long = [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];

        assert_eq!(Err(Error::NonMinimalLength), FrameHeader::parse(&long, Role::Client));
    }

    #[test]
    fn all_first_two_bytes_are_judged_by_the_tables_of_the_standard() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                for role in [Role::Client, Role::Server] {
                    let mut bytes = vec![first, second];
                    bytes.extend([0x00; 2]); // Enough for no extended length but a wrong 16-bit one.
                    let opcode = first & 0x0F;
                    let is_control = opcode & 0x08 != 0;
                    let is_legal = first & 0x70 == 0
                        && [0, 1, 2, 8, 9, 10].contains(&opcode)
                        && (!is_control || (first & 0x80 != 0 && second & 0x7F <= 125))
                        && (second & 0x80 != 0) == (role == Role::Server)
                        && second & 0x7F != 126;

                    assert_eq!(is_legal, FrameHeader::parse(&bytes, role).is_ok(), "{bytes:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn more_bytes_never_change_a_verdict(
            bytes in bytes_of(any::<u8>(), 0..20),
            is_client: bool,
        ) {
            let role = if is_client { Role::Client } else { Role::Server };
            let mut verdict = Ok(None);
            for end in 0..=bytes.len() {
                let now = FrameHeader::parse(&bytes[..end], role);
                if verdict != Ok(None) {
                    prop_assert_eq!(verdict, now);
                }
                verdict = now;
            }
        }
    }
}
