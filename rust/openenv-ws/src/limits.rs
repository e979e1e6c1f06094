//! The bounds of one connection, each with its precedent.

/// Bounds on what a peer can make this side hold.
///
/// Start from [`Limits::default`] and change what differs:
/// `Limits::default().with_max_message_bytes(1 << 20)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest received message in bytes, summed over its fragments. 100 MiB by default, what
    /// upstream's client accepts.
    pub max_message_bytes: usize,
    /// Longest head of an HTTP request or answer in bytes. 64 KiB by default, as uvicorn's `h11`.
    pub max_header_bytes: usize,
    /// Most header fields in a head. 100 by default, as Apache's `LimitRequestFields` and hyper.
    pub max_headers: usize,
    /// Control frames in bytes that wait for the caller to drain them; beyond it pings are refused
    /// and only the latest pong is kept. 16 KiB by default: 125 of the longest control frames.
    pub max_pending_control_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 100 << 20,
            max_header_bytes: 64 << 10,
            max_headers: 100,
            max_pending_control_bytes: 16 << 10,
        }
    }
}

impl Limits {
    /// The same bounds with another longest message, in bytes.
    #[must_use]
    pub const fn with_max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// The same bounds with another longest head, in bytes.
    #[must_use]
    pub const fn with_max_header_bytes(mut self, bytes: usize) -> Self {
        self.max_header_bytes = bytes;
        self
    }

    /// The same bounds with another number of header fields.
    #[must_use]
    pub const fn with_max_headers(mut self, count: usize) -> Self {
        self.max_headers = count;
        self
    }

    /// The same bounds with another bound on waiting control frames, in bytes.
    #[must_use]
    pub const fn with_max_pending_control_bytes(mut self, bytes: usize) -> Self {
        self.max_pending_control_bytes = bytes;
        self
    }
}
