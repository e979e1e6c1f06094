//! Invariant: any bytes, however split, never panic, give the events, failure and answers of the same bytes at once, and allocate no more than a multiple of what arrived.
//!
//! Input: settings, seed of the split, bytes of frames. Settings: 1 client, 2 small limits, 4 we
//! have closed already, 8 a ping of ours waits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openenv_fuzz::{
    FixedMask,
    memory::allocated_bytes,
    pieces::{BYTE_BY_BYTE, cut},
};
use openenv_ws::{Connection, Error, Event, Limits, MessageKind, Role, State};

/// What a message may claim at its first bytes, and some small change.
const FREE_BYTES: usize = 80 << 10;
/// Payload and answer, each in a vector that doubles, and 8 bytes for the smallest vector.
const BYTES_PER_BYTE: usize = 16;
/// The longest control frame a client writes.
const CONTROL_BYTES: usize = 131;

#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<Event<'static>>,
    error: Option<Error>,
    output: Vec<u8>,
    state: State,
}

fuzz_target!(|input: &[u8]| {
    let [settings, seed, bytes @ ..] = input else { return };
    let limits = limits(*settings);
    let expected = feed(connection(*settings), &[bytes]);
    check(&expected, &limits);
    for pieces in [cut(bytes, BYTE_BY_BYTE), cut(bytes, *seed)] {
        assert_eq!(expected, feed(connection(*settings), &pieces));
        check_memory(connection(*settings), &pieces, bytes.len());
    }
});

fn limits(settings: u8) -> Limits {
    match settings & 2 {
        0 => Limits::default(),
        _ => Limits::default().with_max_message_bytes(64).with_max_pending_control_bytes(32),
    }
}

fn connection(settings: u8) -> Connection {
    let role = if settings & 1 == 0 { Role::Server } else { Role::Client };
    let mut connection = Connection::new(role, limits(settings));
    if settings & 8 != 0 {
        connection.ping(b"ours", &mut FixedMask).unwrap();
    }
    if settings & 4 != 0 {
        connection.close(1000, "done", &mut FixedMask).unwrap();
    }
    connection
}

fn feed(mut connection: Connection, pieces: &[&[u8]]) -> Outcome {
    let (mut events, mut error) = (Vec::new(), None);
    for mut piece in pieces.iter().copied() {
        loop {
            match connection.receive(&mut piece, &mut FixedMask) {
                Ok(Some(event)) => {
                    assert!(!is_over(&events, error), "an event after the end");
                    events.push(owned(event));
                }
                Ok(None) => break,
                Err(failure) => assert_eq!(None, error.replace(failure), "it fails once"),
            }
        }
        assert!(piece.is_empty(), "all input is taken");
    }
    let output = connection.output().clone();
    let state = connection.state();
    let ended = connection.eof();
    assert_eq!(matches!(state, State::Open | State::CloseSent), ended.is_err());
    Outcome { events, error, output, state }
}

fn check(outcome: &Outcome, limits: &Limits) {
    assert!(outcome.error.is_none() || outcome.state == State::Closed);
    assert!(outcome.output.len() <= limits.max_pending_control_bytes + 3 * CONTROL_BYTES);
    for event in &outcome.events {
        match event {
            Event::Message { kind, payload } => {
                assert!(payload.len() <= limits.max_message_bytes);
                assert!(*kind == MessageKind::Binary || str::from_utf8(payload).is_ok());
            }
            Event::Ping(payload) | Event::Pong(payload) => assert!(payload.len() <= 125),
            Event::Close { reason, .. } => assert!(reason.len() <= 123),
        }
    }
}

/// Events are dropped as they come, so that what is counted is the machine's own.
fn check_memory(mut connection: Connection, pieces: &[&[u8]], arrived_bytes: usize) {
    let ((), bytes) = allocated_bytes(|| {
        for mut piece in pieces.iter().copied() {
            while let Ok(Some(_)) = connection.receive(&mut piece, &mut FixedMask) {}
        }
    });
    let bound = FREE_BYTES + BYTES_PER_BYTE * arrived_bytes;
    assert!(bytes <= bound, "{bytes} bytes allocated for {arrived_bytes}");
}

fn is_over(events: &[Event<'_>], error: Option<Error>) -> bool {
    error.is_some() || matches!(events.last(), Some(Event::Close { .. }))
}

fn owned(event: Event<'_>) -> Event<'static> {
    match event {
        Event::Message { kind, payload } => {
            Event::Message { kind, payload: payload.into_owned().into() }
        }
        Event::Ping(payload) => Event::Ping(payload),
        Event::Pong(payload) => Event::Pong(payload),
        Event::Close { code, reason } => Event::Close { code, reason },
    }
}
