//! Requests: their names, and the fixed text around a payload.

use alloc::vec::Vec;

/// What a client asks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the classic wire is closed; news goes through mux")]
pub enum Op {
    /// End the session. The one request without an answer.
    Close,
    /// A JSON-RPC call to the environment's tools.
    Mcp,
    /// Start an episode.
    Reset,
    /// Read the environment's state. Carries no data.
    State,
    /// Apply an action.
    Step,
}

impl Op {
    /// Each request once.
    pub const ALL: [Self; 5] = [Self::Close, Self::Mcp, Self::Reset, Self::State, Self::Step];

    /// The request of this wire name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Mcp => "mcp",
            Self::Reset => "reset",
            Self::State => "state",
            Self::Step => "step",
        }
    }

    /// Whether a payload stands between [`begin_request`] and [`end_request`].
    pub const fn has_data(self) -> bool {
        match self {
            Self::Close | Self::State => false,
            Self::Mcp | Self::Reset | Self::Step => true,
        }
    }
}

/// Appends what stands before the payload. The payload follows if [`Op::has_data`].
pub fn begin_request(op: Op, out: &mut Vec<u8>) {
    out.extend_from_slice(match op {
        Op::Close => br#"{"type":"close""#,
        Op::Mcp => br#"{"type":"mcp","data":"#,
        Op::Reset => br#"{"type":"reset","data":"#,
        Op::State => br#"{"type":"state""#,
        Op::Step => br#"{"type":"step","data":"#,
    });
}

/// Appends what stands after the payload.
pub fn end_request(_op: Op, out: &mut Vec<u8>) {
    out.push(b'}');
}
