//! The body of a Close frame (RFC 6455 §5.5.1) and its codes (§7.4).

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use core::str;

use crate::{error::Error, frame::MAX_CONTROL_BYTES};

/// Longest close reason in bytes: a control payload without the code.
const MAX_REASON_BYTES: usize = MAX_CONTROL_BYTES - 2;

/// What a Close frame says; the code is `None` if its body is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CloseBody {
    pub(crate) code: Option<u16>,
    pub(crate) reason: String,
}

/// Reads the body of the peer's Close frame.
///
/// # Errors
/// What the peer did wrong.
pub(crate) fn parse(payload: &[u8]) -> Result<CloseBody, Error> {
    if payload.is_empty() {
        return Ok(CloseBody { code: None, reason: String::new() });
    }
    let Some((&code, reason)) = payload.split_first_chunk::<2>() else {
        return Err(Error::InvalidClosePayload);
    };
    let code = u16::from_be_bytes(code);
    if !is_on_the_wire(code) {
        return Err(Error::InvalidCloseCode);
    }
    let reason = str::from_utf8(reason).map_err(|_| Error::InvalidUtf8)?;
    Ok(CloseBody { code: Some(code), reason: reason.to_owned() })
}

/// Writes the body of our caller's Close frame.
///
/// # Errors
/// What the caller did wrong.
pub(crate) fn encode(code: u16, reason: &str) -> Result<Vec<u8>, Error> {
    if !is_on_the_wire(code) {
        return Err(Error::UnsendableCloseCode);
    }
    if reason.len() > MAX_REASON_BYTES {
        return Err(Error::OversizedControl);
    }
    let mut body = Vec::with_capacity(2 + reason.len());
    body.extend_from_slice(&code.to_be_bytes());
    body.extend_from_slice(reason.as_bytes());
    Ok(body)
}

/// Whether a code may be in a Close frame: assigned by RFC 6455 §7.4.1 or by IANA since
/// (1012 to 1014), or from the ranges for libraries and applications (§7.4.2).
const fn is_on_the_wire(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_of_the_standard_and_its_ranges_are_on_the_wire() {
        let legal: Vec<u16> = (0..=u16::MAX).filter(|&code| is_on_the_wire(code)).collect();
        let mut expected: Vec<u16> = alloc::vec![1000, 1001, 1002, 1003];
        expected.extend([1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014]);
        expected.extend(3000..5000);

        assert_eq!(expected, legal);
    }

    #[test]
    fn body_is_read_as_it_was_written() {
        for reason in ["", "going away", "ü€😀"] {
            let expected = CloseBody { code: Some(1001), reason: reason.to_owned() };

            assert_eq!(Ok(expected), encode(1001, reason).and_then(|body| parse(&body)));
        }
        assert_eq!(Ok(CloseBody { code: None, reason: String::new() }), parse(b""));
    }

    #[test]
    fn broken_bodies_are_named() {
        assert_eq!(Err(Error::InvalidClosePayload), parse(&[3]));
        assert_eq!(Err(Error::InvalidCloseCode), parse(&1005_u16.to_be_bytes()));
        assert_eq!(Err(Error::InvalidUtf8), parse(&[3, 232, 0xC0]));
        assert_eq!(Err(Error::InvalidUtf8), parse(&[3, 232, 0xE2, 0x82]));
    }

    #[test]
    fn what_the_caller_cannot_send_is_named() {
        assert_eq!(Err(Error::UnsendableCloseCode), encode(1006, ""));
        assert_eq!(Err(Error::OversizedControl), encode(1000, &"x".repeat(124)));
        assert!(encode(1000, &"x".repeat(123)).is_ok_and(|body| body.len() == 125));
    }
}
