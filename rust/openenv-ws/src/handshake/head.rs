//! What both sides of the upgrade share: the head's bytes, its fields, the key's answer.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::{mem, str};

use base64::{Engine, engine::general_purpose::STANDARD};
use sha1::{Digest, Sha1};

use super::error::HandshakeError;
use crate::limits::Limits;

/// The string that RFC 6455 §1.3 appends to the key.
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A head that is arriving. Scans each byte once for the blank line, however the bytes are split.
pub(super) struct HeadBuffer {
    bytes: Vec<u8>,
    scanned: usize,
    max_bytes: usize,
}

/// A head that has arrived, with its blank line, and what came after it.
pub(super) struct Head {
    pub(super) bytes: Vec<u8>,
    pub(super) rest: Vec<u8>,
}

impl HeadBuffer {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self { bytes: Vec::new(), scanned: 0, max_bytes: limits.max_header_bytes }
    }

    /// Takes more bytes; returns the head once it is there.
    ///
    /// # Errors
    /// [`HandshakeError::HeadTooLarge`]; [`HandshakeError::NotHttp`] as soon as `could_be` refuses
    /// the bytes, so that a peer of another protocol is not waited for.
    pub(super) fn receive(
        &mut self,
        data: &[u8],
        could_be: fn(&[u8]) -> bool,
    ) -> Result<Option<Head>, HandshakeError> {
        self.bytes.extend_from_slice(data);
        if !could_be(&self.bytes) {
            return Err(HandshakeError::NotHttp);
        }
        let end = self.end();
        if end.unwrap_or(self.bytes.len()) > self.max_bytes {
            return Err(HandshakeError::HeadTooLarge { limit: self.max_bytes });
        }
        Ok(end.map(|end| {
            let rest = self.bytes.split_off(end);
            Head { bytes: mem::take(&mut self.bytes), rest }
        }))
    }

    /// Where the blank line ends, be its line breaks CR LF or bare LF (RFC 9112 §2.2).
    fn end(&mut self) -> Option<usize> {
        let from = self.scanned.saturating_sub(3);
        let unseen = self.bytes.get(from..).unwrap_or_default();
        let found = unseen.iter().enumerate().find_map(|(at, &byte)| {
            let after = unseen.get(at + 1..).unwrap_or_default();
            match (byte, after) {
                (b'\n', [b'\n', ..]) => Some(at + 2),
                (b'\n', [b'\r', b'\n', ..]) => Some(at + 3),
                _ => None,
            }
        });
        self.scanned = self.bytes.len();
        found.map(|at| from + at)
    }
}

/// The fields of a head, as they came.
pub(super) struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    /// The values of all fields of this name, in any case.
    pub(super) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let matching = self.0.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
        matching.map(|(_, value)| value.trim_matches([' ', '\t']))
    }

    /// The elements of a comma-separated list, over all fields of this name (RFC 9110 §5.6.1).
    pub(super) fn elements<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let elements = self.all(name).flat_map(|value| value.split(','));
        elements.map(|element| element.trim_matches([' ', '\t'])).filter(|e| !e.is_empty())
    }

    /// Whether a comma-separated list names `token`, in any case.
    pub(super) fn names(&self, name: &str, token: &str) -> bool {
        self.elements(name).any(|element| element.eq_ignore_ascii_case(token))
    }
}

/// A request's head, split.
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) minor_version: u8,
    pub(super) fields: Fields,
}

/// Splits a request's head.
///
/// # Errors
/// The peer's faults of form, or more fields than `max_headers`.
pub(super) fn parse_request(
    head: &[u8],
    max_headers: usize,
) -> Result<RequestHead, HandshakeError> {
    let mut storage = vec![httparse::EMPTY_HEADER; max_headers];
    let mut request = httparse::Request::new(&mut storage);
    check_parsed(request.parse(head), head.len(), max_headers)?;
    let (Some(method), Some(target), Some(minor_version)) =
        (request.method, request.path, request.version)
    else {
        return Err(HandshakeError::NotHttp);
    };
    let fields = Fields(request.headers.iter().map(owned).collect());
    Ok(RequestHead { method: method.to_owned(), target: target.to_owned(), minor_version, fields })
}

/// An answer's head, split.
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) minor_version: u8,
    pub(super) fields: Fields,
}

/// Splits an answer's head.
///
/// # Errors
/// The peer's faults of form, or more fields than `max_headers`.
pub(super) fn parse_response(
    head: &[u8],
    max_headers: usize,
) -> Result<ResponseHead, HandshakeError> {
    let mut storage = vec![httparse::EMPTY_HEADER; max_headers];
    let mut response = httparse::Response::new(&mut storage);
    check_parsed(response.parse(head), head.len(), max_headers)?;
    let (Some(status), Some(minor_version)) = (response.code, response.version) else {
        return Err(HandshakeError::NotHttp);
    };
    let fields = Fields(response.headers.iter().map(owned).collect());
    Ok(ResponseHead { status, minor_version, fields })
}

fn check_parsed(
    parsed: httparse::Result<usize>,
    head_bytes: usize,
    max_headers: usize,
) -> Result<(), HandshakeError> {
    match parsed {
        Ok(httparse::Status::Complete(end)) if end == head_bytes => Ok(()),
        Err(httparse::Error::TooManyHeaders) => {
            Err(HandshakeError::TooManyHeaders { limit: max_headers })
        }
        Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => {
            Err(HandshakeError::InvalidHeader)
        }
        Ok(_) | Err(_) => Err(HandshakeError::NotHttp),
    }
}

fn owned(header: &httparse::Header<'_>) -> (String, String) {
    let value = str::from_utf8(header.value).map_or_else(
        // Not UTF-8: read as ISO-8859-1, the historical meaning (RFC 9110 §5.5).
        |_| header.value.iter().map(|&byte| char::from(byte)).collect(),
        ToString::to_string,
    );
    (header.name.to_owned(), value)
}

/// The `Sec-WebSocket-Key` of a nonce.
pub(super) fn key_of(nonce: [u8; 16]) -> String {
    STANDARD.encode(nonce)
}

/// Whether a key is the base64 of 16 bytes.
pub(super) fn is_key(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16)
}

/// The `Sec-WebSocket-Accept` that answers a key (§4.2.2).
pub(super) fn accept_of(key: &str) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(KEY_SUFFIX).finalize())
}

/// Refuses the caller's fields that cannot be sent, or that the upgrade itself writes.
///
/// # Errors
/// [`HandshakeError::UnsendableHeader`], [`HandshakeError::ReservedHeader`].
pub(super) fn check_caller_headers(headers: &[(String, String)]) -> Result<(), HandshakeError> {
    for (name, value) in headers {
        if !is_token(name) || !is_field_value(value) {
            return Err(HandshakeError::UnsendableHeader { name: name.clone() });
        }
        if is_reserved(name) {
            return Err(HandshakeError::ReservedHeader { name: name.clone() });
        }
    }
    Ok(())
}

/// Appends one header line.
pub(super) fn push_field(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Whether a text is a token (RFC 9110 §5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// Whether a byte may be in a token.
pub(super) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Whether a text may be a field's value: no line break, no other control character but tab.
pub(super) fn is_field_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control())
}

/// Fields that decide what the upgrade or the following bytes mean.
fn is_reserved(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("sec-websocket-")
        || matches!(
            lower.as_str(),
            "connection" | "content-length" | "host" | "transfer-encoding" | "upgrade"
        )
}
