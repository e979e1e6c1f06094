//! One side of an established connection: states, sending, closing (RFC 6455 §5 to §7).
//!
//! The states and rules are drawn at the top of the crate.

use alloc::vec::Vec;
use core::ops::Range;

use crate::{
    close,
    error::Error,
    frame::{self, FrameHeader, MAX_CONTROL_BYTES, MAX_HEADER_BYTES, MessageKind, Role},
    limits::Limits,
    mask::{self, MaskSource},
    outbox::Outbox,
    receiver::{Event, Receiver},
};

/// Where the connection stands; drawn at the top of the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "RFC 6455 §7.1 has no other states")]
pub enum State {
    /// Messages go both ways.
    Open,
    /// The caller closed; the peer may still send until its own Close.
    CloseSent,
    /// The peer closed; the echo waits in the output.
    CloseReceived,
    /// Nothing is sent or received any more.
    Closed,
}

/// A frame begun in a caller's buffer, to be given to [`Connection::seal`].
#[derive(Debug)]
#[must_use = "a begun frame is useless until it is sealed"]
pub struct FrameStart {
    room_at: usize,
    payload_at: usize,
}

/// One side of an established WebSocket connection.
///
/// ```
/// use openenv_ws::{Connection, Event, Limits, MessageKind, Role, Unmasked};
///
/// let mut server = Connection::new(Role::Server, Limits::default());
/// let mut out = Vec::new();
/// let start = server.begin(&mut out);
/// out.extend_from_slice(b"hello");
/// let frame = server.seal(start, MessageKind::Text, &mut out, &mut Unmasked)?;
///
/// let mut client = Connection::new(Role::Client, Limits::default());
/// let mut input = &out[frame];
/// let event = client.receive(&mut input, &mut Unmasked)?;
/// let payload = b"hello".as_slice().into();
/// assert_eq!(event, Some(Event::Message { kind: MessageKind::Text, payload }));
/// # Ok::<(), openenv_ws::Error>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    role: Role,
    state: State,
    receiver: Receiver,
    outbox: Outbox,
}

impl Connection {
    /// An open connection, just after the handshake.
    pub fn new(role: Role, limits: Limits) -> Self {
        Self {
            role,
            state: State::Open,
            receiver: Receiver::new(role, limits.max_message_bytes),
            outbox: Outbox::new(limits.max_pending_control_bytes),
        }
    }

    /// Takes the next event from `input`, advancing it. Call it until `None`, then write the
    /// [`output`](Self::output).
    ///
    /// Pongs and the echo of a Close are queued to the output. `mask` is asked for a key only by
    /// a client, and only for such an answer.
    ///
    /// # Errors
    /// The peer broke a rule or a limit. A Close frame with the right code is queued, the state is
    /// [`State::Closed`], and all further input is ignored.
    #[inline]
    pub fn receive<'i>(
        &mut self,
        input: &mut &'i [u8],
        mask: &mut dyn MaskSource,
    ) -> Result<Option<Event<'i>>, Error> {
        match self.state {
            State::Open | State::CloseSent => {}
            State::CloseReceived | State::Closed => {
                *input = &[];
                return Ok(None);
            }
        }
        match self.receiver.next(input) {
            Ok(Some(message @ Event::Message { .. })) => Ok(Some(message)),
            Ok(Some(control)) => {
                self.answer(&control, mask);
                Ok(Some(control))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.fail(error, mask);
                *input = &[];
                Err(error)
            }
        }
    }

    /// Begins a message at the end of `out` by making room for its header. Append the payload to
    /// `out`, then [`seal`](Self::seal) it.
    pub fn begin(&self, out: &mut Vec<u8>) -> FrameStart {
        let room = match self.role {
            Role::Client => MAX_HEADER_BYTES,
            Role::Server => MAX_HEADER_BYTES - 4, // A server's header has no key.
        };
        let room_at = out.len();
        out.resize(room_at + room, 0);
        FrameStart { room_at, payload_at: out.len() }
    }

    /// Finishes the message begun by `start`: the payload is everything in `out` after it. Writes
    /// the header against the payload and masks in place for a client; nothing is moved.
    ///
    /// The payload of a `Text` must be UTF-8; this is the caller's promise and not checked.
    /// Returns the range of `out` that is the frame; the bytes between `begin` and it are unused
    /// room and must not be written to the transport.
    ///
    /// # Errors
    /// [`Error::ConnectionClosed`] unless the state is [`State::Open`];
    /// [`Error::ForeignFrameStart`] if `out` is shorter than it was at `begin`. `out` is unchanged.
    #[expect(clippy::needless_pass_by_value, reason = "a begun frame is sealed once")]
    pub fn seal(
        &mut self,
        start: FrameStart,
        kind: MessageKind,
        out: &mut [u8],
        mask: &mut dyn MaskSource,
    ) -> Result<Range<usize>, Error> {
        self.check_open()?;
        let FrameStart { room_at, payload_at } = start;
        let Some((head, payload)) = out.split_at_mut_checked(payload_at) else {
            return Err(Error::ForeignFrameStart);
        };
        let key = self.key(mask);
        if let Some(key) = key {
            mask::apply(payload, key, 0);
        }
        let payload_bytes = payload.len() as u64;
        let header = FrameHeader { is_final: true, opcode: kind.into(), key, payload_bytes };
        let room = head.get_mut(room_at..).unwrap_or_default();
        let frame_at = payload_at.saturating_sub(header.write_right_aligned(room));
        Ok(frame_at..out.len())
    }

    /// Appends `payload` as one finished frame to `out`, without a gap, at the price of a copy.
    ///
    /// # Errors
    /// [`Error::ConnectionClosed`] unless the state is [`State::Open`].
    pub fn append(
        &mut self,
        kind: MessageKind,
        payload: &[u8],
        out: &mut Vec<u8>,
        mask: &mut dyn MaskSource,
    ) -> Result<(), Error> {
        self.check_open()?;
        frame::append_frame(out, kind.into(), payload, self.key(mask));
        Ok(())
    }

    /// Queues a ping of up to 125 bytes to the output.
    ///
    /// # Errors
    /// [`Error::ConnectionClosed`] unless the state is [`State::Open`];
    /// [`Error::OversizedControl`]; [`Error::PendingControlFull`] if the output is not drained.
    pub fn ping(&mut self, payload: &[u8], mask: &mut dyn MaskSource) -> Result<(), Error> {
        self.check_open()?;
        if payload.len() > MAX_CONTROL_BYTES {
            return Err(Error::OversizedControl);
        }
        let key = self.key(mask);
        self.outbox.ping(payload, key)
    }

    /// Starts the closing handshake by queueing a Close frame (§7.1.2). Does nothing if the
    /// connection is closing or closed already.
    ///
    /// # Errors
    /// [`Error::UnsendableCloseCode`]; [`Error::OversizedControl`] if `reason` has more than 123
    /// bytes. The state is unchanged.
    pub fn close(
        &mut self,
        code: u16,
        reason: &str,
        mask: &mut dyn MaskSource,
    ) -> Result<(), Error> {
        let body = close::encode(code, reason)?;
        if self.state == State::Open {
            let key = self.key(mask);
            self.outbox.close(&body, key);
            self.state = State::CloseSent;
        }
        Ok(())
    }

    /// Tells that the transport has ended.
    ///
    /// # Errors
    /// [`Error::UnexpectedEof`] if the peer has sent no Close and no failure was reported.
    pub fn eof(&mut self) -> Result<(), Error> {
        let before = self.state;
        self.state = State::Closed;
        match before {
            State::Open | State::CloseSent => Err(Error::UnexpectedEof),
            State::CloseReceived | State::Closed => Ok(()),
        }
    }

    /// The control frames to write now; the caller drains it. When the state is
    /// [`State::Closed`] and this is empty, the transport can be closed.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.outbox.frames()
    }

    /// Where the connection stands.
    pub const fn state(&self) -> State {
        match self.state {
            // The echo is the last thing of the closing handshake (§7.1.4).
            State::CloseReceived if self.outbox.is_empty() => State::Closed,
            state => state,
        }
    }

    /// Queues what a control frame asks for.
    fn answer(&mut self, event: &Event<'_>, mask: &mut dyn MaskSource) {
        match (event, self.state) {
            (Event::Ping(payload), State::Open) => {
                let key = self.key(mask);
                self.outbox.pong(payload, key);
            }
            (Event::Close { code, .. }, State::Open) => {
                let key = self.key(mask);
                let code = code.map(u16::to_be_bytes);
                self.outbox.close(code.as_ref().map_or(&[], |code| code), key);
                self.state = State::CloseReceived;
            }
            (Event::Close { .. }, _) => self.state = State::Closed,
            // Our Close is the last frame we send, so later pings stay unanswered (§5.5.1).
            (Event::Ping(_) | Event::Pong(_) | Event::Message { .. }, _) => {}
        }
    }

    /// Fails the connection (§7.1.7).
    fn fail(&mut self, error: Error, mask: &mut dyn MaskSource) {
        if self.state == State::Open {
            let key = self.key(mask);
            // Every sentence fits and 1006 is never a failure of input: tests/ws/errors.rs walks all.
            let body = close::encode(error.close_code(), error.sentence()).unwrap_or_default();
            self.outbox.close(&body, key);
        }
        self.state = State::Closed;
    }

    const fn check_open(&self) -> Result<(), Error> {
        match self.state {
            State::Open => Ok(()),
            State::CloseSent | State::CloseReceived | State::Closed => Err(Error::ConnectionClosed),
        }
    }

    fn key(&self, mask: &mut dyn MaskSource) -> Option<[u8; 4]> {
        match self.role {
            Role::Client => Some(mask.next_mask()),
            Role::Server => None,
        }
    }
}
