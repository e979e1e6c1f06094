//! What a peer or a caller did wrong. The caller of this crate maps causes to wire codes.

use core::fmt;

use crate::scan::MAX_DEPTH;

/// Why a message is not an envelope, or a slice not the object that was asked for.
///
/// Positions are byte offsets into the text that was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// A value nests deeper than [`MAX_DEPTH`].
    DepthExceeded {
        /// Where the first container below the limit opens.
        position: usize,
    },
    /// Well-formed JSON, but not an object.
    NotAnObject,
    /// Not JSON as RFC 8259 has it.
    NotJson {
        /// Where the reader stopped.
        position: usize,
    },
    /// Not UTF-8.
    NotUtf8 {
        /// Length of the valid prefix.
        position: usize,
    },
    /// An object without `type`.
    TypeMissing,
    /// `type` is not a string.
    TypeNotString,
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DepthExceeded { position } => {
                write!(out, "JSON nests deeper than {MAX_DEPTH} at byte {position}")
            }
            Self::NotAnObject => out.write_str("message is not a JSON object"),
            Self::NotJson { position } => write!(out, "message is not JSON at byte {position}"),
            Self::NotUtf8 { position } => write!(out, "message is not UTF-8 at byte {position}"),
            Self::TypeMissing => out.write_str("message has no `type`"),
            Self::TypeNotString => out.write_str("message has a `type` that is not a string"),
        }
    }
}

impl core::error::Error for EnvelopeError {}

/// Which rule of a session's order was broken, and by whom.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// Local: `close` was submitted as a request, but the server never answers it.
    CloseSubmitted,
    /// Local: more requests wait than the limit allows.
    QueueFull {
        /// The limit, in requests.
        limit: usize,
    },
    /// Local: the session has failed or was closed.
    SessionClosed,
    /// Remote: the server answered, and no request is owed an answer.
    UnsolicitedAnswer,
}

impl fmt::Display for SessionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CloseSubmitted => out.write_str("`close` has no answer to wait for"),
            Self::QueueFull { limit } => {
                write!(out, "{limit} requests already wait in this session")
            }
            Self::SessionClosed => out.write_str("the session is closed"),
            Self::UnsolicitedAnswer => out.write_str("the server answered without a request"),
        }
    }
}

impl core::error::Error for SessionError {}
