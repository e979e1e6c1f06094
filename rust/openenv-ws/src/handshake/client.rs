//! The client's side of the upgrade (RFC 6455 §4.1).

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use core::fmt;

use super::{
    error::HandshakeError,
    head::{self, Fields, Head, HeadBuffer, ResponseHead},
};
use crate::limits::Limits;

/// Most bytes of a refusal's body that are kept: enough for a proxy's or a server's explanation.
const MAX_REFUSAL_BYTES: usize = 4 << 10;
/// How each answer begins.
const ANSWER_START: &[u8] = b"HTTP/1.";

/// The result of a successful upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upgraded {
    /// The header fields of the 101 answer.
    pub headers: Vec<(String, String)>,
    /// The subprotocol the server chose, one of those offered.
    pub subprotocol: Option<String>,
    /// What came after the head: the first bytes for `Connection::receive`.
    pub rest: Vec<u8>,
}

/// One upgrade, asked by a client.
pub struct ClientHandshake {
    request: Vec<u8>,
    accept: String,
    subprotocols: Vec<String>,
    max_headers: usize,
    /// `None` once the handshake has succeeded or failed.
    answer: Option<HeadBuffer>,
}

impl fmt::Debug for ClientHandshake {
    /// Leaves out the request, which may carry credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_finished = self.answer.is_none();
        f.debug_struct("ClientHandshake").field("is_finished", &is_finished).finish_non_exhaustive()
    }
}

impl ClientHandshake {
    /// Prepares an upgrade of `target` (path and query, escaped) at `host` (with the port unless it
    /// is the scheme's own). `nonce` must be random and is used once.
    ///
    /// # Errors
    /// The caller's host, target, headers or subprotocols cannot be sent, or a header is one that
    /// the upgrade itself writes.
    pub fn new(
        host: &str,
        target: &str,
        headers: &[(String, String)],
        subprotocols: &[&str],
        nonce: [u8; 16],
        limits: Limits,
    ) -> Result<Self, HandshakeError> {
        check_address(host, target)?;
        check_subprotocols(subprotocols)?;
        head::check_caller_headers(headers)?;
        let key = head::key_of(nonce);
        Ok(Self {
            request: compose(host, target, headers, subprotocols, &key),
            accept: head::accept_of(&key),
            subprotocols: subprotocols.iter().map(|&name| name.to_owned()).collect(),
            max_headers: limits.max_headers,
            answer: Some(HeadBuffer::new(&limits)),
        })
    }

    /// Takes bytes of the server's answer; returns the result once its head is there.
    ///
    /// # Errors
    /// The server refused, broke a rule or a limit; or the handshake is over already.
    pub fn receive(&mut self, data: &[u8]) -> Result<Option<Upgraded>, HandshakeError> {
        let mut answer = self.answer.take().ok_or(HandshakeError::Finished)?;
        let Some(head) = answer.receive(data, could_be_answer)? else {
            self.answer = Some(answer);
            return Ok(None);
        };
        self.judge(head).map(Some)
    }

    /// The upgrade request, to be written first.
    pub fn request(&self) -> Vec<u8> {
        self.request.clone()
    }

    fn judge(&self, head: Head) -> Result<Upgraded, HandshakeError> {
        let ResponseHead { status, minor_version, fields } =
            head::parse_response(&head.bytes, self.max_headers)?;
        if status != 101 {
            let mut body = head.rest;
            body.truncate(MAX_REFUSAL_BYTES);
            return Err(HandshakeError::Refused { status, headers: fields.0, body });
        }
        if minor_version == 0 {
            return Err(HandshakeError::UnsupportedHttpVersion);
        }
        self.check_upgrade(&fields)?;
        let subprotocol = self.chosen_subprotocol(&fields)?;
        Ok(Upgraded { headers: fields.0, subprotocol, rest: head.rest })
    }

    fn check_upgrade(&self, fields: &Fields) -> Result<(), HandshakeError> {
        if !fields.names("upgrade", "websocket") {
            return Err(HandshakeError::MissingUpgrade);
        }
        if !fields.names("connection", "upgrade") {
            return Err(HandshakeError::MissingConnection);
        }
        let mut accepts = fields.all("sec-websocket-accept");
        match (accepts.next(), accepts.next()) {
            (None, _) => return Err(HandshakeError::MissingAccept),
            (Some(accept), None) if accept == self.accept => {}
            (Some(_), _) => return Err(HandshakeError::WrongAccept),
        }
        if fields.elements("sec-websocket-extensions").next().is_some() {
            return Err(HandshakeError::UnofferedExtension);
        }
        Ok(())
    }

    fn chosen_subprotocol(&self, fields: &Fields) -> Result<Option<String>, HandshakeError> {
        let mut chosen = fields.all("sec-websocket-protocol");
        match (chosen.next(), chosen.next()) {
            (None, _) => Ok(None),
            (Some(name), None) if self.subprotocols.iter().any(|offer| offer == name) => {
                Ok(Some(name.to_owned()))
            }
            (Some(_), _) => Err(HandshakeError::UnofferedSubprotocol),
        }
    }
}

fn could_be_answer(bytes: &[u8]) -> bool {
    bytes.iter().zip(ANSWER_START).all(|(byte, expected)| byte == expected)
}

fn check_address(host: &str, target: &str) -> Result<(), HandshakeError> {
    let is_host_byte = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#');
    if host.is_empty() || !host.bytes().all(is_host_byte) {
        return Err(HandshakeError::UnsendableHost);
    }
    let is_target_byte = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if !target.starts_with('/') || !target.bytes().all(is_target_byte) {
        return Err(HandshakeError::UnsendableTarget);
    }
    Ok(())
}

fn check_subprotocols(subprotocols: &[&str]) -> Result<(), HandshakeError> {
    let mut before: Vec<&str> = Vec::with_capacity(subprotocols.len());
    for &name in subprotocols {
        if !head::is_token(name) || before.contains(&name) {
            return Err(HandshakeError::UnsendableSubprotocol);
        }
        before.push(name);
    }
    Ok(())
}

fn compose(
    host: &str,
    target: &str,
    headers: &[(String, String)],
    subprotocols: &[&str],
    key: &str,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    for part in ["GET ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    head::push_field(&mut out, "Host", host);
    head::push_field(&mut out, "Upgrade", "websocket");
    head::push_field(&mut out, "Connection", "Upgrade");
    head::push_field(&mut out, "Sec-WebSocket-Key", key);
    head::push_field(&mut out, "Sec-WebSocket-Version", "13");
    if !subprotocols.is_empty() {
        head::push_field(&mut out, "Sec-WebSocket-Protocol", &subprotocols.join(", "));
    }
    for (name, value) in headers {
        head::push_field(&mut out, name, value);
    }
    out.extend_from_slice(b"\r\n");
    out
}
