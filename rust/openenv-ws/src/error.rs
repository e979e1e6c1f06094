//! What can go wrong on an established connection, and whose fault it is.

use core::fmt;

/// Whose fault an error is (STYLE 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "callers map each fault to one error class")]
pub enum Fault {
    /// A bound in [`Limits`](crate::Limits) was hit.
    Limit,
    /// The caller on this side broke a rule.
    Local,
    /// The peer broke a rule.
    Remote,
}

/// A failure of an established connection, named by what the peer or the caller did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The caller sends on a connection that is closing or closed (§5.5.1).
    ConnectionClosed,
    /// The peer's control frame declares more than 125 bytes (§5.5).
    ControlTooLong,
    /// The peer began a message inside a fragmented one (§5.4).
    ExpectedContinuation,
    /// The caller sealed a frame in a buffer that is not the one it began.
    ForeignFrameStart,
    /// The peer fragmented a control frame (§5.4).
    FragmentedControl,
    /// The peer closed with a code that must not be on the wire (§7.4).
    InvalidCloseCode,
    /// The peer's Close has a body of one byte (§5.5.1).
    InvalidClosePayload,
    /// The peer's text message or close reason is not UTF-8 (§8.1).
    InvalidUtf8,
    /// The peer's length has its highest bit set (§5.2).
    LengthTooLarge,
    /// A server sent a masked frame (§5.1).
    MaskedFrame,
    /// The peer's message is longer than the limit.
    MessageTooBig {
        /// The limit in bytes.
        limit: usize,
    },
    /// The peer did not use the shortest form of a length (§5.2).
    NonMinimalLength,
    /// The caller's ping has more than 125 bytes, or its close reason more than 123 (§5.5).
    OversizedControl,
    /// The caller pings faster than control frames are drained.
    PendingControlFull,
    /// The peer set a reserved bit, although no extension was negotiated (§5.2).
    ReservedBits,
    /// The peer used an opcode that has no meaning (§5.2).
    ReservedOpcode,
    /// The peer continued a message that was never begun (§5.4).
    UnexpectedContinuation,
    /// The transport ended without a closing handshake (§7.1.5).
    UnexpectedEof,
    /// A client sent a frame without a mask (§5.1).
    UnmaskedFrame,
    /// The caller closes with a code that must not be on the wire (§7.4).
    UnsendableCloseCode,
}

impl Error {
    /// The close code that tells the peer about this failure (§7.4.1); 1006 is never sent.
    pub const fn close_code(&self) -> u16 {
        match self {
            Self::ControlTooLong
            | Self::ExpectedContinuation
            | Self::FragmentedControl
            | Self::InvalidCloseCode
            | Self::InvalidClosePayload
            | Self::LengthTooLarge
            | Self::MaskedFrame
            | Self::NonMinimalLength
            | Self::ReservedBits
            | Self::ReservedOpcode
            | Self::UnexpectedContinuation
            | Self::UnmaskedFrame => 1002,
            Self::UnexpectedEof => 1006,
            Self::InvalidUtf8 => 1007,
            Self::MessageTooBig { .. } => 1009,
            Self::ConnectionClosed
            | Self::ForeignFrameStart
            | Self::OversizedControl
            | Self::PendingControlFull
            | Self::UnsendableCloseCode => 1011,
        }
    }

    /// Whose fault this failure is.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::MessageTooBig { .. } | Self::PendingControlFull => Fault::Limit,
            Self::ConnectionClosed
            | Self::ForeignFrameStart
            | Self::OversizedControl
            | Self::UnsendableCloseCode => Fault::Local,
            Self::ControlTooLong
            | Self::ExpectedContinuation
            | Self::FragmentedControl
            | Self::InvalidCloseCode
            | Self::InvalidClosePayload
            | Self::InvalidUtf8
            | Self::LengthTooLarge
            | Self::MaskedFrame
            | Self::NonMinimalLength
            | Self::ReservedBits
            | Self::ReservedOpcode
            | Self::UnexpectedContinuation
            | Self::UnexpectedEof
            | Self::UnmaskedFrame => Fault::Remote,
        }
    }

    /// What happened, without the fields; fits into a Close frame.
    pub(crate) const fn sentence(&self) -> &'static str {
        match self {
            Self::ConnectionClosed => "the connection is closing or closed",
            Self::ControlTooLong => "control frame longer than 125 bytes",
            Self::ExpectedContinuation => "new message inside a fragmented message",
            Self::ForeignFrameStart => "frame sealed in a buffer it was not begun in",
            Self::FragmentedControl => "fragmented control frame",
            Self::InvalidCloseCode => "close code that must not be sent",
            Self::InvalidClosePayload => "close frame with a body of one byte",
            Self::InvalidUtf8 => "text that is not valid UTF-8",
            Self::LengthTooLarge => "frame length with its highest bit set",
            Self::MaskedFrame => "masked frame from a server",
            Self::MessageTooBig { .. } => "message longer than the limit",
            Self::NonMinimalLength => "frame length not in its shortest form",
            Self::OversizedControl => "ping longer than 125 bytes or close reason longer than 123",
            Self::PendingControlFull => "too many control frames wait to be written",
            Self::ReservedBits => "reserved bit set without an extension",
            Self::ReservedOpcode => "frame with a reserved opcode",
            Self::UnexpectedContinuation => "continuation without a message to continue",
            Self::UnexpectedEof => "connection ended without a closing handshake",
            Self::UnmaskedFrame => "unmasked frame from a client",
            Self::UnsendableCloseCode => "close code that must not be sent by the caller",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessageTooBig { limit } => write!(f, "{} of {limit} bytes", self.sentence()),
            _ => f.write_str(self.sentence()),
        }
    }
}

impl core::error::Error for Error {}
