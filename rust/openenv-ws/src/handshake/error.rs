//! What can go wrong in the upgrade, and whose fault it is.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::error::Fault;

/// A failure of the upgrade, named by what the peer or the caller did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The caller accepts with a subprotocol that the client did not offer.
    AcceptedUnofferedSubprotocol,
    /// The client's key is not the base64 of 16 bytes, or is there twice (§4.2.1).
    BadKey,
    /// The caller feeds a handshake that has succeeded or failed.
    Finished,
    /// The head is longer than `Limits::max_header_bytes`.
    HeadTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The peer's header field is malformed (RFC 9112 §5).
    InvalidHeader,
    /// The server's answer has no `Sec-WebSocket-Accept`.
    MissingAccept,
    /// `Connection` does not name `upgrade`.
    MissingConnection,
    /// The request has no `Host`, or more than one (RFC 9112 §3.2).
    MissingHost,
    /// The request has no `Sec-WebSocket-Key`.
    MissingKey,
    /// `Upgrade` does not name `websocket`.
    MissingUpgrade,
    /// The request's method is not `GET`.
    NotGet,
    /// The bytes are not an HTTP/1 head.
    NotHttp,
    /// The server answered with another status than 101.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The header fields of the answer.
        headers: Vec<(String, String)>,
        /// What came of the body together with the head, 4 KiB at most.
        body: Vec<u8>,
    },
    /// The caller gives a header field that the upgrade itself writes.
    ReservedHeader {
        /// The field's name.
        name: String,
    },
    /// The head has more fields than `Limits::max_headers`.
    TooManyHeaders {
        /// The limit.
        limit: usize,
    },
    /// The upgrade request announces a body.
    UnexpectedBody,
    /// The server answered with an extension; none was offered (§4.1).
    UnofferedExtension,
    /// The server chose a subprotocol that was not offered (§4.1).
    UnofferedSubprotocol,
    /// The caller's header name or value cannot be sent, for example because of a line break.
    UnsendableHeader {
        /// The field's name.
        name: String,
    },
    /// The caller's host is empty or has a character that cannot be in `Host`.
    UnsendableHost,
    /// The caller's status is not a final answer (200 to 599), or its reason has a line break.
    UnsendableStatus,
    /// The caller's subprotocol is not a token, or is there twice.
    UnsendableSubprotocol,
    /// The caller's target does not begin with `/` or has a character that must be escaped.
    UnsendableTarget,
    /// The peer speaks HTTP/1.0, which has no upgrade.
    UnsupportedHttpVersion,
    /// The client asks for another version than 13 (§4.2.1).
    UnsupportedVersion,
    /// The server's `Sec-WebSocket-Accept` does not answer our key (§4.1).
    WrongAccept,
}

impl HandshakeError {
    /// The HTTP status with which a server refuses this request, and its reason phrase; `None` for
    /// failures that a server does not meet in a request.
    pub const fn status(&self) -> Option<(u16, &'static str)> {
        match self {
            Self::BadKey
            | Self::InvalidHeader
            | Self::MissingConnection
            | Self::MissingHost
            | Self::MissingKey
            | Self::NotHttp
            | Self::UnexpectedBody => Some((400, "Bad Request")),
            Self::NotGet => Some((405, "Method Not Allowed")),
            Self::MissingUpgrade | Self::UnsupportedVersion => Some((426, "Upgrade Required")),
            Self::HeadTooLarge { .. } | Self::TooManyHeaders { .. } => {
                Some((431, "Request Header Fields Too Large"))
            }
            Self::UnsupportedHttpVersion => Some((505, "HTTP Version Not Supported")),
            Self::AcceptedUnofferedSubprotocol
            | Self::Finished
            | Self::MissingAccept
            | Self::Refused { .. }
            | Self::ReservedHeader { .. }
            | Self::UnofferedExtension
            | Self::UnofferedSubprotocol
            | Self::UnsendableHeader { .. }
            | Self::UnsendableHost
            | Self::UnsendableStatus
            | Self::UnsendableSubprotocol
            | Self::UnsendableTarget
            | Self::WrongAccept => None,
        }
    }

    /// Whose fault this failure is.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::HeadTooLarge { .. } | Self::TooManyHeaders { .. } => Fault::Limit,
            Self::AcceptedUnofferedSubprotocol
            | Self::Finished
            | Self::ReservedHeader { .. }
            | Self::UnsendableHeader { .. }
            | Self::UnsendableHost
            | Self::UnsendableStatus
            | Self::UnsendableSubprotocol
            | Self::UnsendableTarget => Fault::Local,
            Self::BadKey
            | Self::InvalidHeader
            | Self::MissingAccept
            | Self::MissingConnection
            | Self::MissingHost
            | Self::MissingKey
            | Self::MissingUpgrade
            | Self::NotGet
            | Self::NotHttp
            | Self::Refused { .. }
            | Self::UnexpectedBody
            | Self::UnofferedExtension
            | Self::UnofferedSubprotocol
            | Self::UnsupportedHttpVersion
            | Self::UnsupportedVersion
            | Self::WrongAccept => Fault::Remote,
        }
    }

    const fn sentence(&self) -> &'static str {
        match self {
            Self::AcceptedUnofferedSubprotocol => "accepted with a subprotocol nobody offered",
            Self::BadKey => "Sec-WebSocket-Key is not the base64 of 16 bytes",
            Self::Finished => "the handshake is over",
            Self::HeadTooLarge { .. } => "HTTP head longer than the limit",
            Self::InvalidHeader => "malformed HTTP header field",
            Self::MissingAccept => "the answer has no Sec-WebSocket-Accept",
            Self::MissingConnection => "the Connection header does not name upgrade",
            Self::MissingHost => "the request does not have exactly one Host header",
            Self::MissingKey => "the request has no Sec-WebSocket-Key",
            Self::MissingUpgrade => "the Upgrade header does not name websocket",
            Self::NotGet => "the method of an upgrade request must be GET",
            Self::NotHttp => "not an HTTP/1.1 head",
            Self::Refused { .. } => "the server refused the upgrade",
            Self::ReservedHeader { .. } => "header that the upgrade itself writes",
            Self::TooManyHeaders { .. } => "more HTTP header fields than the limit",
            Self::UnexpectedBody => "the upgrade request announces a body",
            Self::UnofferedExtension => "the server answered with an extension nobody offered",
            Self::UnofferedSubprotocol => "the server chose a subprotocol nobody offered",
            Self::UnsendableHeader { .. } => "header with a character that cannot be sent",
            Self::UnsendableHost => "host that cannot be sent",
            Self::UnsendableStatus => "status or reason that cannot be sent",
            Self::UnsendableSubprotocol => "subprotocol that is not a token or is repeated",
            Self::UnsendableTarget => "target that does not begin with / or must be escaped",
            Self::UnsupportedHttpVersion => "HTTP/1.0 has no upgrade",
            Self::UnsupportedVersion => "WebSocket version other than 13",
            Self::WrongAccept => "Sec-WebSocket-Accept does not answer the key",
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = self.sentence();
        match self {
            Self::HeadTooLarge { limit } => write!(f, "{sentence} of {limit} bytes"),
            Self::TooManyHeaders { limit } => write!(f, "{sentence} of {limit}"),
            Self::Refused { status, .. } => write!(f, "{sentence} with HTTP status {status}"),
            Self::ReservedHeader { name } | Self::UnsendableHeader { name } => {
                write!(f, "{sentence}: {name:?}")
            }
            _ => f.write_str(sentence),
        }
    }
}

impl core::error::Error for HandshakeError {}
