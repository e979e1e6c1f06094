//! The server's side of the upgrade (RFC 6455 §4.2).

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use super::{
    error::HandshakeError,
    head::{self, Fields, Head, HeadBuffer, RequestHead},
};
use crate::limits::Limits;

/// A valid upgrade request, to be accepted or rejected.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Path and query as they came, escaped.
    pub target: String,
    /// The header fields as they came, in order; names in the client's case.
    pub headers: Vec<(String, String)>,
    /// The subprotocols offered, the preferred one first.
    pub subprotocols: Vec<String>,
    /// The client's key, the base64 of 16 bytes.
    pub key: String,
    /// What came after the head: the first bytes for `Connection::receive`.
    pub rest: Vec<u8>,
}

impl fmt::Debug for Request {
    /// Leaves out the headers' values and the query, which may carry credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.target.split('?').next();
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Request")
            .field("path", &path)
            .field("header_names", &names)
            .field("subprotocols", &self.subprotocols)
            .field("rest_bytes", &self.rest.len())
            .finish_non_exhaustive()
    }
}

/// One upgrade, answered by a server.
pub struct ServerHandshake {
    max_headers: usize,
    /// `None` once the request has arrived or failed.
    request: Option<HeadBuffer>,
}

impl fmt::Debug for ServerHandshake {
    /// Leaves out the bytes, which may carry credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_finished = self.request.is_none();
        f.debug_struct("ServerHandshake").field("is_finished", &is_finished).finish_non_exhaustive()
    }
}

impl ServerHandshake {
    /// Waits for a request.
    pub const fn new(limits: Limits) -> Self {
        Self { max_headers: limits.max_headers, request: Some(HeadBuffer::new(&limits)) }
    }

    /// Takes bytes of the client's request; returns it once its head is there.
    ///
    /// # Errors
    /// The client broke a rule or a limit: write [`refusal`](Self::refusal) and close. Or the
    /// handshake is over already.
    pub fn receive(&mut self, data: &[u8]) -> Result<Option<Request>, HandshakeError> {
        let mut request = self.request.take().ok_or(HandshakeError::Finished)?;
        let Some(head) = request.receive(data, could_be_request)? else {
            self.request = Some(request);
            return Ok(None);
        };
        self.judge(head).map(Some)
    }

    /// The 101 answer that accepts a request; no extension is ever answered (§9.1).
    ///
    /// # Errors
    /// The caller's subprotocol was not offered, or a header cannot be sent or is one that the
    /// upgrade itself writes.
    pub fn accept(
        request: &Request,
        subprotocol: Option<&str>,
        headers: &[(String, String)],
    ) -> Result<Vec<u8>, HandshakeError> {
        head::check_caller_headers(headers)?;
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
        head::push_field(&mut out, "Upgrade", "websocket");
        head::push_field(&mut out, "Connection", "Upgrade");
        head::push_field(&mut out, "Sec-WebSocket-Accept", &head::accept_of(&request.key));
        if let Some(name) = subprotocol {
            if !request.subprotocols.iter().any(|offer| offer == name) {
                return Err(HandshakeError::AcceptedUnofferedSubprotocol);
            }
            head::push_field(&mut out, "Sec-WebSocket-Protocol", name);
        }
        finish(&mut out, headers, b"");
        Ok(out)
    }

    /// An answer that refuses a request; the caller closes the transport after it.
    ///
    /// # Errors
    /// The caller's status, reason or headers cannot be sent; `Connection` and `Content-Length`
    /// are written here.
    pub fn reject(
        status: u16,
        reason: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Vec<u8>, HandshakeError> {
        head::check_caller_headers(headers)?;
        if !(200..=599).contains(&status) || !head::is_field_value(reason) {
            return Err(HandshakeError::UnsendableStatus);
        }
        let mut out = status_line(status, reason);
        head::push_field(&mut out, "Connection", "close");
        head::push_field(&mut out, "Content-Length", &body.len().to_string());
        finish(&mut out, headers, body);
        Ok(out)
    }

    /// The answer to a request that [`receive`](Self::receive) refused, with the fields that its
    /// status asks for (RFC 9110 §15.5.6, §15.5.22; RFC 6455 §4.4).
    pub fn refusal(error: &HandshakeError) -> Vec<u8> {
        let (status, reason) = error.status().unwrap_or((400, "Bad Request"));
        let body = error.to_string();
        let mut out = status_line(status, reason);
        match status {
            405 => head::push_field(&mut out, "Allow", "GET"),
            426 => {
                head::push_field(&mut out, "Upgrade", "websocket");
                head::push_field(&mut out, "Connection", "Upgrade");
                head::push_field(&mut out, "Sec-WebSocket-Version", "13");
            }
            _ => {}
        }
        head::push_field(&mut out, "Connection", "close");
        head::push_field(&mut out, "Content-Type", "text/plain; charset=utf-8");
        head::push_field(&mut out, "Content-Length", &body.len().to_string());
        finish(&mut out, &[], body.as_bytes());
        out
    }

    fn judge(&self, head: Head) -> Result<Request, HandshakeError> {
        let RequestHead { method, target, minor_version, fields } =
            head::parse_request(&head.bytes, self.max_headers)?;
        if method != "GET" {
            return Err(HandshakeError::NotGet);
        }
        if minor_version == 0 {
            return Err(HandshakeError::UnsupportedHttpVersion);
        }
        check_fields(&fields)?;
        let key = key(&fields)?.to_owned();
        let subprotocols = fields.elements("sec-websocket-protocol").map(str::to_owned).collect();
        Ok(Request { target, headers: fields.0, subprotocols, key, rest: head.rest })
    }
}

/// Blank lines may precede a request (RFC 9112 §2.2); then comes the method, a token.
fn could_be_request(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|&byte| head::is_token_byte(byte) || matches!(byte, b'\r' | b'\n'))
}

fn check_fields(fields: &Fields) -> Result<(), HandshakeError> {
    if fields.all("host").count() != 1 {
        return Err(HandshakeError::MissingHost);
    }
    let has_length = fields.all("content-length").any(|length| length != "0");
    if has_length || fields.all("transfer-encoding").next().is_some() {
        return Err(HandshakeError::UnexpectedBody);
    }
    if !fields.names("upgrade", "websocket") {
        return Err(HandshakeError::MissingUpgrade);
    }
    if !fields.names("connection", "upgrade") {
        return Err(HandshakeError::MissingConnection);
    }
    let mut versions = fields.all("sec-websocket-version");
    match (versions.next(), versions.next()) {
        (Some("13"), None) => Ok(()),
        _ => Err(HandshakeError::UnsupportedVersion),
    }
}

fn key(fields: &Fields) -> Result<&str, HandshakeError> {
    let mut keys = fields.all("sec-websocket-key");
    match (keys.next(), keys.next()) {
        (None, _) => Err(HandshakeError::MissingKey),
        (Some(key), None) if head::is_key(key) => Ok(key),
        (Some(_), _) => Err(HandshakeError::BadKey),
    }
}

fn status_line(status: u16, reason: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    for part in ["HTTP/1.1 ", &status.to_string(), " ", reason, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    out
}

fn finish(out: &mut Vec<u8>, headers: &[(String, String)], body: &[u8]) {
    for (name, value) in headers {
        head::push_field(out, name, value);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}
