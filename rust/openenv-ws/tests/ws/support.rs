//! What the tests of connections share: a plain frame writer (the oracle) and a driver.

use openenv_ws::{Connection, Error, Event, Limits, MaskSource, Role, State};

/// Masking key of the test's own frames.
pub(crate) const PEER_KEY: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];
pub(crate) const CONTINUATION: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// Masks with one key, so that outputs can be compared.
pub(crate) struct FixedMask;

impl MaskSource for FixedMask {
    fn next_mask(&mut self) -> [u8; 4] {
        [0xA1, 0xB2, 0xC3, 0xD4]
    }
}

/// What happened while some input was taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<Event<'static>>,
    pub(crate) error: Option<Error>,
    pub(crate) output: Vec<u8>,
    pub(crate) state: State,
}

/// A frame as RFC 6455 §5.2 prints it, written word by word.
pub(crate) fn frame(is_final: bool, opcode: u8, payload: &[u8], key: Option<[u8; 4]>) -> Vec<u8> {
    let mut out = vec![if is_final { 0x80 | opcode } else { opcode }];
    let mask_bit = if key.is_some() { 0x80 } else { 0 };
    if payload.len() < 126 {
        out.push(mask_bit | u8::try_from(payload.len()).unwrap());
    } else if payload.len() < 65536 {
        out.push(mask_bit | 0x7E);
        out.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
    } else {
        out.push(mask_bit | 0x7F);
        out.extend((payload.len() as u64).to_be_bytes());
    }
    out.extend(key.unwrap_or_default().iter().take(if key.is_some() { 4 } else { 0 }));
    let mask = key.unwrap_or_default().into_iter().cycle();
    out.extend(payload.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    out
}

/// A frame as the peer of `role` would send it.
pub(crate) fn peer_frame(role: Role, is_final: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    frame(is_final, opcode, payload, peer_key(role))
}

/// A frame as `role` itself sends it.
pub(crate) fn own_frame(role: Role, opcode: u8, payload: &[u8]) -> Vec<u8> {
    let key = (role == Role::Client).then(|| FixedMask.next_mask());
    frame(true, opcode, payload, key)
}

/// The key that the peer of `role` uses.
pub(crate) fn peer_key(role: Role) -> Option<[u8; 4]> {
    (role == Role::Server).then_some(PEER_KEY)
}

/// A Close frame's body.
pub(crate) fn close_body(code: u16, reason: &str) -> Vec<u8> {
    [&code.to_be_bytes(), reason.as_bytes()].concat()
}

/// Gives the pieces to a connection one after the other, as reads of a transport.
pub(crate) fn feed<'p>(
    connection: &mut Connection,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Outcome {
    let mut events = Vec::new();
    let mut error = None;
    for mut piece in pieces {
        loop {
            match connection.receive(&mut piece, &mut FixedMask) {
                Ok(Some(event)) => events.push(into_static(event)),
                Ok(None) => break,
                Err(failure) => {
                    assert_eq!(None, error.replace(failure), "a connection fails once");
                    break;
                }
            }
        }
        assert!(piece.is_empty(), "all input is taken");
    }
    let output = connection.output().clone();
    Outcome { events, error, output, state: connection.state() }
}

/// Gives all bytes at once to a fresh connection.
pub(crate) fn feed_fresh(role: Role, bytes: &[u8]) -> Outcome {
    feed(&mut Connection::new(role, Limits::default()), [bytes])
}

fn into_static(event: Event<'_>) -> Event<'static> {
    match event {
        Event::Message { kind, payload } => {
            Event::Message { kind, payload: payload.into_owned().into() }
        }
        Event::Ping(payload) => Event::Ping(payload),
        Event::Pong(payload) => Event::Pong(payload),
        Event::Close { code, reason } => Event::Close { code, reason },
    }
}
