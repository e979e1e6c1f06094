//! Replies: their names, and the fixed text around a payload.

use alloc::vec::Vec;

/// What a server answers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the classic wire is closed; news goes through mux")]
pub enum ReplyKind {
    /// The request failed.
    Error,
    /// A JSON-RPC answer.
    Mcp,
    /// Answer to `reset` and `step`.
    Observation,
    /// Answer to `state`.
    State,
}

impl ReplyKind {
    /// Each reply once.
    pub const ALL: [Self; 4] = [Self::Error, Self::Mcp, Self::Observation, Self::State];

    /// The reply of this wire name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Mcp => "mcp",
            Self::Observation => "observation",
            Self::State => "state",
        }
    }
}

/// Appends what stands before the payload; every reply has one.
pub fn begin_reply(kind: ReplyKind, out: &mut Vec<u8>) {
    out.extend_from_slice(match kind {
        ReplyKind::Error => br#"{"type":"error","data":"#,
        ReplyKind::Mcp => br#"{"type":"mcp","data":"#,
        ReplyKind::Observation => br#"{"type":"observation","data":"#,
        ReplyKind::State => br#"{"type":"state","data":"#,
    });
}

/// Appends what stands between the payload and the `ext` value.
///
/// Only for peers that asked for extensions in the handshake.
pub fn begin_extension(out: &mut Vec<u8>) {
    out.extend_from_slice(br#","ext":"#);
}

/// Appends what stands after the payload, or after the `ext` value.
pub fn end_reply(_kind: ReplyKind, out: &mut Vec<u8>) {
    out.push(b'}');
}
