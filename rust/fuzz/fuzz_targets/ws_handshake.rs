//! Invariant: a head, however split, never panics and gives one verdict with what follows it; each refusal is an HTTP answer, and each accepted request's answer is accepted by its client.
//!
//! Input: settings, seed of the split, bytes. Settings: 1 the bytes are a server's answer (to the
//! nonce below), else a client's request; 2 small limits.
#![no_main]

use base64::{Engine, engine::general_purpose::STANDARD};
use libfuzzer_sys::fuzz_target;
use openenv_fuzz::{
    memory::allocated_bytes,
    pieces::{BYTE_BY_BYTE, cut},
};
use openenv_ws::{ClientHandshake, HandshakeError, Limits, Request, ServerHandshake, Upgraded};

const NONCE: [u8; 16] = *b"the sample nonce";
const OFFERED: [&str; 2] = ["openenv.mux.1", "openenv"];
/// Room for a hundred fields, twice, and some small change.
const FREE_BYTES: usize = 32 << 10;
const BYTES_PER_BYTE: usize = 64;

fuzz_target!(|input: &[u8]| {
    let [settings, seed, bytes @ ..] = input else { return };
    let limits = match settings & 2 {
        0 => Limits::default(),
        _ => Limits::default().with_max_header_bytes(256).with_max_headers(6),
    };
    let splits = [cut(bytes, BYTE_BY_BYTE), cut(bytes, *seed)];
    if settings & 1 == 0 {
        check_request(&limits, bytes, &splits);
    } else {
        check_answer(&limits, bytes, &splits);
    }
});

fn check_request(limits: &Limits, bytes: &[u8], splits: &[Vec<&[u8]>]) {
    let (expected, allocated) = allocated_bytes(|| request(limits, &[bytes]));
    assert!(allocated <= FREE_BYTES + BYTES_PER_BYTE * bytes.len(), "{allocated} bytes");
    for pieces in splits {
        assert_eq!(expected, request(limits, pieces));
    }
    match expected {
        Ok(Some(request)) => check_accepted(&request, bytes),
        Ok(None) => {}
        Err(error) => check_refusal(&error),
    }
}

fn check_answer(limits: &Limits, bytes: &[u8], splits: &[Vec<&[u8]>]) {
    let (expected, allocated) = allocated_bytes(|| answer(limits, &[bytes]));
    assert!(allocated <= FREE_BYTES + BYTES_PER_BYTE * bytes.len(), "{allocated} bytes");
    let (expected, whole_body) = without_body(expected);
    for pieces in splits {
        let (seen, body) = without_body(answer(limits, pieces));
        assert_eq!(expected, seen);
        assert!(whole_body.starts_with(&body), "only what came with the head is kept");
    }
    if let Ok(Some(upgraded)) = expected {
        assert!(bytes.ends_with(&upgraded.rest));
        assert!(upgraded.subprotocol.is_none_or(|name| OFFERED.contains(&name.as_str())));
    }
}

fn request(limits: &Limits, pieces: &[&[u8]]) -> Result<Option<Request>, HandshakeError> {
    let mut handshake = ServerHandshake::new(*limits);
    for (at, piece) in pieces.iter().enumerate() {
        if let Some(mut request) = handshake.receive(piece)? {
            request.rest.extend(pieces[at + 1..].concat());
            assert_eq!(Err(HandshakeError::Finished), handshake.receive(b""));
            return Ok(Some(request));
        }
    }
    Ok(None)
}

fn answer(limits: &Limits, pieces: &[&[u8]]) -> Result<Option<Upgraded>, HandshakeError> {
    let mut handshake = ClientHandshake::new("host", "/ws", &[], &OFFERED, NONCE, *limits).unwrap();
    for (at, piece) in pieces.iter().enumerate() {
        if let Some(mut upgraded) = handshake.receive(piece)? {
            upgraded.rest.extend(pieces[at + 1..].concat());
            assert_eq!(Err(HandshakeError::Finished), handshake.receive(b""));
            return Ok(Some(upgraded));
        }
    }
    Ok(None)
}

/// The client whose request this could be takes our answer.
fn check_accepted(request: &Request, bytes: &[u8]) {
    assert!(bytes.ends_with(&request.rest));
    let nonce: [u8; 16] = STANDARD.decode(&request.key).unwrap().try_into().unwrap();
    let offered = request.subprotocols.first().map(String::as_str);
    let names: Vec<&str> = offered.into_iter().collect();
    // What is no subprotocol could be offered by no client of ours.
    let Ok(mut client) = ClientHandshake::new("host", "/", &[], &names, nonce, Limits::default())
    else {
        return;
    };
    let answer = ServerHandshake::accept(request, offered, &[]).unwrap();
    let upgraded = client.receive(&answer).unwrap().unwrap();
    assert_eq!(offered, upgraded.subprotocol.as_deref());
    assert!(upgraded.rest.is_empty());
}

/// Any client reads the refusal as what it is.
fn check_refusal(error: &HandshakeError) {
    let (expected, _) = error.status().unwrap();
    let refusal = ServerHandshake::refusal(error);
    let mut client = ClientHandshake::new("host", "/", &[], &[], NONCE, Limits::default()).unwrap();
    match client.receive(&refusal) {
        Err(HandshakeError::Refused { status, .. }) => assert_eq!(expected, status),
        other => panic!("{error:?} was told as {other:?}"),
    }
}

type Verdict = Result<Option<Upgraded>, HandshakeError>;

fn without_body(verdict: Verdict) -> (Verdict, Vec<u8>) {
    match verdict {
        Err(HandshakeError::Refused { status, headers, body }) => {
            (Err(HandshakeError::Refused { status, headers, body: Vec::new() }), body)
        }
        other => (other, Vec::new()),
    }
}
