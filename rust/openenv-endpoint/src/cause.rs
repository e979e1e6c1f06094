//! Why a connection ended.

use alloc::string::String;
use core::fmt;

use openenv_ws::{Error, HandshakeError};

/// Why an endpoint is closed. The first cause wins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The caller closed it.
    ClosedByCaller,
    /// The peer sent a Close frame.
    ClosedByPeer {
        /// Its code; `None` when the frame had none.
        code: Option<u16>,
        /// Its reason; may be empty.
        reason: String,
    },
    /// The upgrade was not answered in time.
    ConnectTimedOut,
    /// The transport ended without a Close frame.
    Ended,
    /// The upgrade failed.
    Handshake(HandshakeError),
    /// A ping stayed unanswered.
    KeepaliveTimedOut,
    /// The peer broke RFC 6455 or a limit.
    Protocol(Error),
    /// The server answered although nothing was asked.
    UnsolicitedAnswer,
}

impl Cause {
    /// The close code a caller is told (RFC 6455 §7.4, §7.1.5).
    pub fn close_code(&self) -> u16 {
        match self {
            Self::ClosedByCaller => 1000,
            Self::ClosedByPeer { code, .. } => code.unwrap_or(1005),
            Self::ConnectTimedOut | Self::Ended | Self::Handshake(_) => 1006,
            Self::KeepaliveTimedOut => 1011,
            Self::Protocol(error) => error.close_code(),
            Self::UnsolicitedAnswer => 1002,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedByCaller => out.write_str("this side closed the connection"),
            Self::ClosedByPeer { reason, .. } => out.write_str(reason),
            Self::ConnectTimedOut => out.write_str("the upgrade was not answered in time"),
            Self::Ended => out.write_str("the connection ended without a closing handshake"),
            Self::Handshake(error) => error.fmt(out),
            Self::KeepaliveTimedOut => out.write_str("the peer did not answer a ping in time"),
            Self::Protocol(error) => error.fmt(out),
            Self::UnsolicitedAnswer => out.write_str("the server answered a request never made"),
        }
    }
}
