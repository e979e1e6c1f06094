//! Bytes to events: the receiving half of a connection.
//!
//! ```text
//!   Header --control--> Control --payload complete--> Header
//!     |  ^
//!     |  +--payload complete--+
//!     +--data--> Data --------+      Assembly: the message begun by earlier frames, if any
//! ```
//!
//! A data frame that arrives whole, alone and unfragmented takes none of these states
//! (`whole_message`): it is parsed, checked and handed out in one straight line, and on a client
//! without a copy.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::mem;

use crate::{
    close,
    error::Error,
    frame::{FrameHeader, MAX_HEADER_BYTES, MessageKind, Opcode, Role},
    mask,
    utf8::{self, Utf8Stream},
};

/// Room in bytes that a message may claim at its first bytes, whatever its header declares.
const FIRST_RESERVE_BYTES: usize = 64 << 10;

/// What the peer said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "RFC 6455 has no other frames")]
pub enum Event<'i> {
    /// The peer's Close frame; nothing follows it.
    Close {
        /// Why, or `None` if the peer did not say.
        code: Option<u16>,
        /// Text for a log, possibly empty.
        reason: String,
    },
    /// A whole message.
    Message {
        /// How to read the payload.
        kind: MessageKind,
        /// The payload, valid UTF-8 if `kind` is `Text`. Borrowed from the input where it lay
        /// there whole and unmasked, else owned.
        payload: Cow<'i, [u8]>,
    },
    /// A ping; its pong is queued already.
    Ping(Vec<u8>),
    /// A pong, asked for or not (§5.5.3).
    Pong(Vec<u8>),
}

/// The receiving machine of one side.
#[derive(Debug)]
pub(crate) struct Receiver {
    role: Role,
    max_message_bytes: usize,
    phase: Phase,
    assembly: Option<Assembly>,
}

#[derive(Debug)]
enum Phase {
    Header(HeaderBuffer),
    Control { header: FrameHeader, payload: Vec<u8> },
    Data { header: FrameHeader, received_bytes: usize, remaining_bytes: usize },
}

/// What one turn of the machine came to.
enum Turn<'i> {
    Event(Event<'i>),
    Moved,
    Starved,
}

impl Receiver {
    pub(crate) fn new(role: Role, max_message_bytes: usize) -> Self {
        Self { role, max_message_bytes, phase: Phase::default(), assembly: None }
    }

    /// Takes the next event from `input`, advancing it; `None` if more bytes are needed.
    ///
    /// # Errors
    /// What the peer did wrong; the machine must not be used again.
    #[inline]
    pub(crate) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Error> {
        if self.is_between_messages()
            && let Some(event) = self.whole_message(input)?
        {
            return Ok(Some(event));
        }
        self.next_by_parts(input)
    }

    /// Whether nothing lies here in part.
    fn is_between_messages(&self) -> bool {
        self.assembly.is_none() && matches!(&self.phase, Phase::Header(buffer) if buffer.used == 0)
    }

    /// The straight line: one unfragmented message that lies whole in `input`.
    #[inline]
    fn whole_message<'i>(&self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Error> {
        let Some((header, header_bytes)) = FrameHeader::parse(input, self.role)? else {
            return Ok(None);
        };
        let Some(kind) = header.opcode.message_kind().filter(|_| header.is_final) else {
            return Ok(None);
        };
        let payload_bytes = self.admit(&header, 0)?;
        let Some((payload, after)) =
            input.get(header_bytes..).and_then(|rest| rest.split_at_checked(payload_bytes))
        else {
            return Ok(None);
        };
        let payload = match header.key {
            None => Cow::Borrowed(payload),
            Some(key) => Cow::Owned(unmasked(payload, key)),
        };
        if kind == MessageKind::Text && !utf8::is_utf8(&payload) {
            return Err(Error::InvalidUtf8);
        }
        *input = after;
        Ok(Some(Event::Message { kind, payload }))
    }

    fn next_by_parts<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Error> {
        loop {
            let turn = match self.phase {
                Phase::Header(_) => self.turn_header(input)?,
                Phase::Control { .. } => self.turn_control(input)?,
                Phase::Data { .. } => self.turn_data(input)?,
            };
            match turn {
                Turn::Event(event) => return Ok(Some(event)),
                Turn::Moved => {}
                Turn::Starved => return Ok(None),
            }
        }
    }

    fn turn_header<'i>(&mut self, input: &mut &[u8]) -> Result<Turn<'i>, Error> {
        let Phase::Header(buffer) = &mut self.phase else { return Ok(Turn::Moved) };
        let Some(header) = buffer.parse(input, self.role)? else { return Ok(Turn::Starved) };
        self.phase = if header.opcode.is_control() {
            Phase::Control { header, payload: Vec::new() }
        } else {
            let remaining_bytes = self.begin_data(&header)?;
            Phase::Data { header, received_bytes: 0, remaining_bytes }
        };
        Ok(Turn::Moved)
    }

    /// Checks a data frame against the message it belongs to; returns its length in bytes.
    fn begin_data(&mut self, header: &FrameHeader) -> Result<usize, Error> {
        let assembled_bytes = match (header.opcode.message_kind(), &self.assembly) {
            (Some(_), Some(_)) => return Err(Error::ExpectedContinuation),
            (None, None) => return Err(Error::UnexpectedContinuation),
            (Some(_), None) => 0,
            (None, Some(assembly)) => assembly.payload.len(),
        };
        let payload_bytes = self.admit(header, assembled_bytes)?;
        if let Some(kind) = header.opcode.message_kind() {
            self.assembly = Some(Assembly::new(kind));
        }
        Ok(payload_bytes)
    }

    /// Checks the declared length against the limit before any room is made for it.
    fn admit(&self, header: &FrameHeader, assembled_bytes: usize) -> Result<usize, Error> {
        let room = self.max_message_bytes.saturating_sub(assembled_bytes);
        usize::try_from(header.payload_bytes)
            .ok()
            .filter(|&payload_bytes| payload_bytes <= room)
            .ok_or(Error::MessageTooBig { limit: self.max_message_bytes })
    }

    fn turn_control<'i>(&mut self, input: &mut &[u8]) -> Result<Turn<'i>, Error> {
        let Phase::Control { header, payload } = &mut self.phase else { return Ok(Turn::Moved) };
        // Control frames have 125 bytes at most, which the header parser has checked.
        let declared_bytes = usize::try_from(header.payload_bytes).unwrap_or(usize::MAX);
        let piece = take(input, declared_bytes.saturating_sub(payload.len()));
        let offset = payload.len();
        append(payload, piece, header.key, offset);
        if payload.len() < declared_bytes {
            return Ok(Turn::Starved);
        }
        let (opcode, payload) = (header.opcode, mem::take(payload));
        self.phase = Phase::default();
        control_event(opcode, payload).map(Turn::Event)
    }

    fn turn_data<'i>(&mut self, input: &mut &[u8]) -> Result<Turn<'i>, Error> {
        let (Phase::Data { header, received_bytes, remaining_bytes }, Some(assembly)) =
            (&mut self.phase, &mut self.assembly)
        else {
            debug_assert!(false, "begin_data makes the assembly of a data frame");
            return Ok(Turn::Starved);
        };
        let piece = take(input, *remaining_bytes);
        // A final frame says how long the message will be; others may be followed by anything.
        let (least, most) = if header.is_final {
            (FIRST_RESERVE_BYTES, assembly.payload.len().saturating_add(*remaining_bytes))
        } else {
            (0, self.max_message_bytes)
        };
        assembly.reserve(piece.len(), least, most);
        assembly.append(piece, header.key, *received_bytes)?;
        *received_bytes += piece.len();
        *remaining_bytes -= piece.len();
        if *remaining_bytes > 0 {
            return Ok(Turn::Starved);
        }
        let is_final = header.is_final;
        self.phase = Phase::default();
        if is_final { self.finish_message() } else { Ok(Turn::Moved) }
    }

    fn finish_message<'i>(&mut self) -> Result<Turn<'i>, Error> {
        let Some(Assembly { kind, payload, utf8 }) = self.assembly.take() else {
            return Ok(Turn::Moved);
        };
        utf8.finish()?;
        Ok(Turn::Event(Event::Message { kind, payload: Cow::Owned(payload) }))
    }
}

impl Default for Phase {
    fn default() -> Self {
        Self::Header(HeaderBuffer { bytes: [0; MAX_HEADER_BYTES], used: 0 })
    }
}

/// A message under reassembly.
#[derive(Debug)]
struct Assembly {
    kind: MessageKind,
    payload: Vec<u8>,
    utf8: Utf8Stream,
}

impl Assembly {
    fn new(kind: MessageKind) -> Self {
        Self { kind, payload: Vec::new(), utf8: Utf8Stream::default() }
    }

    /// Makes room for `piece_bytes` more, doubling, so that the message has room for `least` to
    /// `most` bytes in all.
    fn reserve(&mut self, piece_bytes: usize, least: usize, most: usize) {
        let needed = self.payload.len().saturating_add(piece_bytes);
        if needed > self.payload.capacity() {
            let target = needed.saturating_mul(2).max(least).min(most).max(needed);
            self.payload.reserve_exact(target.saturating_sub(self.payload.len()));
        }
    }

    fn append(&mut self, piece: &[u8], key: Option<[u8; 4]>, offset: usize) -> Result<(), Error> {
        let start = self.payload.len();
        append(&mut self.payload, piece, key, offset);
        match self.kind {
            MessageKind::Binary => Ok(()),
            MessageKind::Text => self.utf8.feed(self.payload.get(start..).unwrap_or_default()),
        }
    }
}

/// The bytes of a header that has not arrived whole.
#[derive(Debug)]
struct HeaderBuffer {
    bytes: [u8; MAX_HEADER_BYTES],
    used: usize,
}

impl HeaderBuffer {
    /// Takes the header from `input`, together with what arrived before.
    fn parse(&mut self, input: &mut &[u8], role: Role) -> Result<Option<FrameHeader>, Error> {
        let before = self.used;
        let free = self.bytes.iter_mut().skip(before);
        let added = free.zip(input.iter()).map(|(slot, &byte)| *slot = byte).count();
        let known = self.bytes.get(..before + added).unwrap_or_default();
        let Some((header, header_bytes)) = FrameHeader::parse(known, role)? else {
            // A header has 14 bytes at most, so all of the input went into the buffer.
            self.used = before + added;
            *input = &[];
            return Ok(None);
        };
        take(input, header_bytes.saturating_sub(before));
        self.used = 0;
        Ok(Some(header))
    }
}

fn control_event<'i>(opcode: Opcode, payload: Vec<u8>) -> Result<Event<'i>, Error> {
    match opcode {
        Opcode::Ping => Ok(Event::Ping(payload)),
        Opcode::Pong => Ok(Event::Pong(payload)),
        Opcode::Close | Opcode::Continuation | Opcode::Text | Opcode::Binary => {
            debug_assert!(opcode == Opcode::Close, "only control frames come here");
            let close::CloseBody { code, reason } = close::parse(&payload)?;
            Ok(Event::Close { code, reason })
        }
    }
}

fn unmasked(payload: &[u8], key: [u8; 4]) -> Vec<u8> {
    let mut owned = Vec::with_capacity(payload.len());
    mask::extend_unmasked(&mut owned, payload, key, 0);
    owned
}

fn append(out: &mut Vec<u8>, piece: &[u8], key: Option<[u8; 4]>, offset: usize) {
    match key {
        None => out.extend_from_slice(piece),
        Some(key) => mask::extend_unmasked(out, piece, key, offset),
    }
}

/// Takes up to `count` bytes from the front of `input`.
fn take<'i>(input: &mut &'i [u8], count: usize) -> &'i [u8] {
    let (taken, rest) = input.split_at(count.min(input.len()));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests;
