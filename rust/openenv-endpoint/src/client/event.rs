//! What a client endpoint is told to do and what it tells.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::fmt;

use openenv_proto::{ClientLimits, Op, SessionError};
use openenv_ws::Limits;

use crate::keepalive::KeepaliveConfig;

/// Where to connect and within which bounds.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plain record of settings")]
pub struct ClientConfig {
    /// Value of the `Host` header.
    pub host: String,
    /// Path and query of the upgrade request.
    pub target: String,
    /// Further request headers.
    pub headers: Vec<(String, String)>,
    /// Bounds on what the server can make this side hold.
    pub limits: Limits,
    /// Bounds on what the caller can make this side hold.
    pub session_limits: ClientLimits,
    /// When to ping.
    pub keepalive: KeepaliveConfig,
}

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "drawn whole at the top of the crate")]
pub enum Phase {
    /// Nothing was sent yet.
    Idle,
    /// The upgrade request is on its way.
    Connecting,
    /// Requests are taken.
    Open,
    /// A Close frame was sent; the peer's is awaited.
    Closing,
    /// Over.
    Closed,
}

/// What has happened, in order.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent<'i, T> {
    /// The server has agreed to the upgrade.
    Opened {
        /// Header fields of its answer.
        headers: Vec<(String, String)>,
    },
    /// A request was answered.
    Answer {
        /// What was given with the request.
        tag: T,
        /// What was asked.
        op: Op,
        /// The whole text of the answer, unparsed.
        payload: Cow<'i, [u8]>,
    },
    /// A request will not be answered.
    Failed {
        /// What was given with the request.
        tag: T,
        /// What was asked.
        op: Op,
        /// Why.
        failure: Failure,
    },
    /// The server said an error that nobody asked for: why it is about to close.
    Refused {
        /// The whole text, unparsed.
        payload: Cow<'i, [u8]>,
    },
    /// The connection is over; see [`ClientEndpoint::cause`]. Failed requests come before it.
    Closed,
}

/// Why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the caller maps each to one error class")]
pub enum Failure {
    /// The connection ended first.
    Closed,
    /// The deadline passed; if it was sent, its answer is still owed and will be dropped.
    Expired,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// The connection is not open.
    NotOpen,
    /// The session refused.
    Session(SessionError),
    /// The message is longer than the server said it takes.
    TooLong {
        /// The message, in bytes.
        bytes: usize,
        /// What the server takes, in bytes.
        limit: usize,
    },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => out.write_str("the connection is not open"),
            Self::Session(error) => error.fmt(out),
            Self::TooLong { bytes, limit } => {
                write!(out, "message of {bytes} bytes, but the server takes {limit}")
            }
        }
    }
}

impl core::error::Error for SubmitError {}

impl<T> ClientEvent<'_, T> {
    /// The same event with its payload copied, where it was borrowed.
    pub fn into_owned(self) -> ClientEvent<'static, T> {
        match self {
            Self::Opened { headers } => ClientEvent::Opened { headers },
            Self::Answer { tag, op, payload } => {
                ClientEvent::Answer { tag, op, payload: Cow::Owned(payload.into_owned()) }
            }
            Self::Failed { tag, op, failure } => ClientEvent::Failed { tag, op, failure },
            Self::Refused { payload } => {
                ClientEvent::Refused { payload: Cow::Owned(payload.into_owned()) }
            }
            Self::Closed => ClientEvent::Closed,
        }
    }
}
