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
