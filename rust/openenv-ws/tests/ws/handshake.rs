//! RFC 6455 §4 from both sides, split anywhere, and what hostile callers and peers try.

use openenv_ws::{ClientHandshake, HandshakeError, Limits, Request, ServerHandshake, Upgraded};
use proptest::{collection::vec as list_of, prelude::*};

/// The nonce, key and answer of RFC 6455 §1.3.
const NONCE: [u8; 16] = *b"the sample nonce";
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

type Headers = Vec<(String, String)>;

fn fields(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
}

fn client(headers: &[(String, String)], subprotocols: &[&str]) -> ClientHandshake {
    let limits = Limits::default();
    ClientHandshake::new("h:1", "/ws?a=b", headers, subprotocols, NONCE, limits).unwrap()
}

fn ask(
    host: &str,
    target: &str,
    headers: &[(&str, &str)],
    subprotocols: &[&str],
) -> Result<(), HandshakeError> {
    let headers = fields(headers);
    ClientHandshake::new(host, target, &headers, subprotocols, NONCE, Limits::default()).map(|_| ())
}

fn answer(lines: &[&str]) -> Vec<u8> {
    [&["HTTP/1.1 101 Switching Protocols"], lines, &["", ""]].concat().join("\r\n").into_bytes()
}

fn judge_answer(bytes: &[u8]) -> Result<Option<Upgraded>, HandshakeError> {
    client(&[], &["v1", "v2"]).receive(bytes)
}

fn good_request() -> Vec<String> {
    [
        "GET /ws?a=b HTTP/1.1",
        "Host: h:1",
        "upgrade: WebSocket",
        "connection: keep-alive, Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    .map(String::from)
    .to_vec()
}

fn joined(lines: &[String]) -> Vec<u8> {
    format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}

fn judge_request(bytes: &[u8]) -> Result<Option<Request>, HandshakeError> {
    ServerHandshake::new(Limits::default()).receive(bytes)
}

/// The good request with line `at` replaced (or dropped, if empty).
fn request_with(at: usize, line: &str) -> Vec<u8> {
    let mut lines = good_request();
    if line.is_empty() {
        lines.remove(at);
    } else {
        lines[at] = line.into();
    }
    joined(&lines)
}

// Client

#[test]
fn request_is_written_as_the_standard_asks() {
    let headers = fields(&[("Authorization", "Bearer x"), ("X-Empty", "")]);
    let expected = "GET /ws?a=b HTTP/1.1\r\nHost: h:1\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v1, v2\r\n\
        Authorization: Bearer x\r\nX-Empty: \r\n\r\n";

    assert_eq!(expected.as_bytes(), client(&headers, &["v1", "v2"]).request());
}

#[test]
fn right_answer_upgrades_and_hands_on_what_follows() {
    let mut bytes = answer(&[
        "UPGRADE: WebSocket",
        "Connection: keep-alive, upgrade",
        &format!("Sec-WebSocket-Accept:  {ACCEPT} "),
        "Sec-WebSocket-Protocol: v2",
    ]);
    bytes.extend(b"\x81\x00");
    let upgraded = judge_answer(&bytes).unwrap().unwrap();

    assert_eq!(Some("v2"), upgraded.subprotocol.as_deref());
    assert_eq!(b"\x81\x00".to_vec(), upgraded.rest);
    assert_eq!(("UPGRADE", "WebSocket"), {
        let (name, value) = &upgraded.headers[0];
        (name.as_str(), value.as_str())
    });
}

#[test]
fn each_wrong_answer_is_named() {
    let upgrade = "Upgrade: websocket";
    let connection = "Connection: Upgrade";
    let accept = &format!("Sec-WebSocket-Accept: {ACCEPT}");
    let wrong = "Sec-WebSocket-Accept: c29tZXRoaW5nIGVsc2U=";
    let protocol = "Sec-WebSocket-Protocol: v1";
    let cases: [(&[&str], HandshakeError); 12] = [
        (&[connection, accept], HandshakeError::MissingUpgrade),
        (&["Upgrade: h2c", connection, accept], HandshakeError::MissingUpgrade),
        (&[upgrade, accept], HandshakeError::MissingConnection),
        (&[upgrade, "Connection: close", accept], HandshakeError::MissingConnection),
        (&[upgrade, connection], HandshakeError::MissingAccept),
        (&[upgrade, connection, wrong], HandshakeError::WrongAccept),
        (&[upgrade, connection, accept, accept], HandshakeError::WrongAccept),
        (
            &[upgrade, connection, accept, "Sec-WebSocket-Extensions: permessage-deflate"],
            HandshakeError::UnofferedExtension,
        ),
        (
            &[upgrade, connection, accept, "Sec-WebSocket-Protocol: v3"],
            HandshakeError::UnofferedSubprotocol,
        ),
        (&[upgrade, connection, accept, protocol, protocol], HandshakeError::UnofferedSubprotocol),
        (&[upgrade, connection, "a b: c", accept], HandshakeError::InvalidHeader),
        (&[upgrade, connection, "a: c\u{1}", accept], HandshakeError::InvalidHeader),
    ];
    for (lines, error) in cases {
        assert_eq!(Err(error), judge_answer(&answer(lines)), "{lines:?}");
    }
}

#[test]
fn refusal_carries_status_headers_and_the_start_of_its_body() {
    let mut bytes = b"HTTP/1.1 503 Busy\r\nRetry-After: 5\r\n\r\n".to_vec();
    bytes.extend([b'x'; 5000]);
    let headers = fields(&[("Retry-After", "5")]);
    let body = vec![b'x'; 4096];

    assert_eq!(Err(HandshakeError::Refused { status: 503, headers, body }), judge_answer(&bytes));
}

#[test]
fn refusal_in_http_1_0_keeps_its_status_but_101_is_none_of_its() {
    let refused = HandshakeError::Refused { status: 403, headers: vec![], body: vec![] };

    assert_eq!(Err(refused), judge_answer(b"HTTP/1.0 403 No\r\n\r\n"));
    assert_eq!(
        Err(HandshakeError::UnsupportedHttpVersion),
        judge_answer(b"HTTP/1.0 101 Switching Protocols\r\n\r\n")
    );
}

#[test]
fn peer_of_another_protocol_fails_at_its_first_wrong_byte() {
    for bytes in [&b"SSH-2.0"[..], b"HTTP/2", b"\x15\x03\x01", b"\r\n"] {
        assert_eq!(Err(HandshakeError::NotHttp), judge_answer(bytes));
    }
    assert_eq!(Ok(None), judge_answer(b"HTTP/1."));
    assert_eq!(Err(HandshakeError::NotHttp), judge_request(b"\x16\x03\x01"));
}

#[test]
fn value_that_is_not_utf8_is_read_as_latin_1() {
    let error = judge_answer(b"HTTP/1.1 401 No\r\nX: gr\xFC\xDF\r\n\r\n").unwrap_err();
    let headers = fields(&[("X", "grüß")]);

    assert_eq!(HandshakeError::Refused { status: 401, headers, body: vec![] }, error);
}

#[test]
fn caller_cannot_smuggle_lines_into_the_request() {
    for bad in ["a\r\nb", "a\nb", "a\0b", "a\u{7F}", "a\u{1B}"] {
        let unsendable = Err(HandshakeError::UnsendableHeader { name: "X".into() });
        let unsendable_name = Err(HandshakeError::UnsendableHeader { name: bad.into() });

        assert_eq!(unsendable, ask("h", "/", &[("X", bad)], &[]));
        assert_eq!(unsendable_name, ask("h", "/", &[(bad, "x")], &[]));
        assert_eq!(Err(HandshakeError::UnsendableHost), ask(bad, "/", &[], &[]));
        assert_eq!(Err(HandshakeError::UnsendableTarget), ask("h", &format!("/{bad}"), &[], &[]));
        assert_eq!(Err(HandshakeError::UnsendableSubprotocol), ask("h", "/", &[], &[bad]));
    }
}

#[test]
fn caller_cannot_replace_what_the_upgrade_writes() {
    for name in [
        "host",
        "UPGRADE",
        "Connection",
        "Sec-WebSocket-Key",
        "sec-websocket-extensions",
        "Content-Length",
        "Transfer-Encoding",
    ] {
        let error = Err(HandshakeError::ReservedHeader { name: name.into() });

        assert_eq!(error, ask("h", "/", &[(name, "x")], &[]));
    }
}

#[test]
fn each_unsendable_argument_is_named() {
    let name = Err(HandshakeError::UnsendableHeader { name: String::new() });

    assert_eq!(name, ask("h", "/", &[("", "x")], &[]));
    assert_eq!(Err(HandshakeError::UnsendableHost), ask("", "/", &[], &[]));
    assert_eq!(Err(HandshakeError::UnsendableHost), ask("a/b", "/", &[], &[]));
    assert_eq!(Err(HandshakeError::UnsendableTarget), ask("h", "ws", &[], &[]));
    assert_eq!(Err(HandshakeError::UnsendableTarget), ask("h", "", &[], &[]));
    assert_eq!(Err(HandshakeError::UnsendableTarget), ask("h", "/ü", &[], &[]));
    assert_eq!(Err(HandshakeError::UnsendableTarget), ask("h", "/a b", &[], &[]));
    assert_eq!(Err(HandshakeError::UnsendableTarget), ask("h", "/a#b", &[], &[]));
    assert_eq!(Err(HandshakeError::UnsendableSubprotocol), ask("h", "/", &[], &["a", "a"]));
    assert_eq!(Err(HandshakeError::UnsendableSubprotocol), ask("h", "/", &[], &["a,b"]));
    assert_eq!(Ok(()), ask("[::1]:8000", "/ws?x=%20", &[("X", "tab\tand ü")], &["a.b"]));
}

// Server

#[test]
fn right_request_is_taken_apart() {
    let mut lines = good_request();
    lines.push("Sec-WebSocket-Protocol: v1 , v2".into());
    lines.push("Sec-WebSocket-Protocol: v3".into());
    lines.push("Sec-WebSocket-Extensions: permessage-deflate".into());
    let request = judge_request(&[&joined(&lines)[..], b"more"].concat()).unwrap().unwrap();

    assert_eq!("/ws?a=b", request.target);
    assert_eq!(vec!["v1", "v2", "v3"], request.subprotocols);
    assert_eq!((KEY, &b"more"[..]), (request.key.as_str(), &request.rest[..]));
    assert_eq!(("Host".to_string(), "h:1".to_string()), request.headers[0]);
}

#[test]
fn each_wrong_request_is_named() {
    let cases = [
        (0, "POST / HTTP/1.1", HandshakeError::NotGet),
        (0, "GET / HTTP/1.0", HandshakeError::UnsupportedHttpVersion),
        (0, "GET / HTTP/2.0", HandshakeError::NotHttp),
        (0, "GET /", HandshakeError::NotHttp),
        (1, "", HandshakeError::MissingHost),
        (1, "Host: a\r\nHost: b", HandshakeError::MissingHost),
        (1, "Host: a\r\nContent-Length: 1", HandshakeError::UnexpectedBody),
        (1, "Host: a\r\nTransfer-Encoding: chunked", HandshakeError::UnexpectedBody),
        (1, "Host : a", HandshakeError::InvalidHeader),
        (1, "Host: a\r\n folded: b", HandshakeError::InvalidHeader),
        (2, "", HandshakeError::MissingUpgrade),
        (2, "Upgrade: websockets", HandshakeError::MissingUpgrade),
        (3, "", HandshakeError::MissingConnection),
        (3, "Connection: keep-alive", HandshakeError::MissingConnection),
        (4, "", HandshakeError::UnsupportedVersion),
        (4, "Sec-WebSocket-Version: 8", HandshakeError::UnsupportedVersion),
        (5, "", HandshakeError::MissingKey),
        (5, "Sec-WebSocket-Key: ", HandshakeError::BadKey),
        (5, "Sec-WebSocket-Key: c2hvcnQ=", HandshakeError::BadKey),
        (5, "Sec-WebSocket-Key: not base64 of anything!!", HandshakeError::BadKey),
    ];
    for (at, line, error) in cases {
        assert_eq!(Err(error), judge_request(&request_with(at, line)).map(|_| ()), "{line:?}");
    }
}

#[test]
fn head_above_its_limits_is_refused_even_before_it_ends() {
    let limits = Limits::default().with_max_header_bytes(40).with_max_headers(2);
    let too_large = Err(HandshakeError::HeadTooLarge { limit: 40 });
    let too_many = Err(HandshakeError::TooManyHeaders { limit: 2 });
    let unfinished = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 30]].concat();
    let finished = [&unfinished[..], b"\r\n\r\n"].concat();

    assert_eq!(too_large, ServerHandshake::new(limits).receive(&unfinished));
    assert_eq!(too_large, ServerHandshake::new(limits).receive(&finished));
    assert_eq!(
        too_many,
        ServerHandshake::new(limits).receive(b"GET / HTTP/1.1\r\na:b\r\nc:d\r\ne:f\r\n\r\n")
    );
}

#[test]
fn blank_line_before_a_request_is_forgiven_and_bare_line_feeds_too() {
    let good = joined(&good_request());
    let led = [&b"\r\n"[..], &good].concat();
    let bare: Vec<u8> = good.iter().copied().filter(|&byte| byte != b'\r').collect();

    assert!(judge_request(&led).unwrap().is_some());
    assert!(judge_request(&bare).unwrap().is_some());
}

#[test]
fn acceptance_answers_the_key_and_no_extension() {
    let mut lines = good_request();
    lines.push("Sec-WebSocket-Protocol: v1".into());
    let request = judge_request(&joined(&lines)).unwrap().unwrap();
    let answer = ServerHandshake::accept(&request, Some("v1"), &fields(&[("X", "y")])).unwrap();
    let expected = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
        Sec-WebSocket-Protocol: v1\r\nX: y\r\n\r\n";

    assert_eq!(expected, String::from_utf8(answer).unwrap());
}

#[test]
fn server_cannot_accept_what_was_not_offered_or_smuggle_lines() {
    let request = judge_request(&joined(&good_request())).unwrap().unwrap();
    let smuggled = fields(&[("X", "a\r\nSet-Cookie: b")]);
    let unsendable = Err(HandshakeError::UnsendableHeader { name: "X".into() });

    assert_eq!(
        Err(HandshakeError::AcceptedUnofferedSubprotocol),
        ServerHandshake::accept(&request, Some("v1"), &[])
    );
    assert_eq!(unsendable, ServerHandshake::accept(&request, None, &smuggled));
    assert_eq!(unsendable, ServerHandshake::reject(403, "No", &smuggled, b""));
    for (status, reason) in [(99, "x"), (101, "x"), (600, "x"), (403, "a\r\nb")] {
        let rejected = ServerHandshake::reject(status, reason, &[], b"");

        assert_eq!(Err(HandshakeError::UnsendableStatus), rejected);
    }
}

#[test]
fn rejection_is_a_whole_http_answer() {
    let headers = fields(&[("Retry-After", "5")]);
    let answer = ServerHandshake::reject(503, "Service Unavailable", &headers, b"busy").unwrap();
    let expected = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
        Content-Length: 4\r\nRetry-After: 5\r\n\r\nbusy";

    assert_eq!(expected, String::from_utf8(answer).unwrap());
}

#[test]
fn refusal_names_the_version_and_the_method_where_its_status_asks_for_them() {
    let text = |error| String::from_utf8(ServerHandshake::refusal(&error)).unwrap();

    assert!(text(HandshakeError::UnsupportedVersion).contains("\r\nSec-WebSocket-Version: 13\r\n"));
    assert!(text(HandshakeError::UnsupportedVersion).starts_with("HTTP/1.1 426 Upgrade Required"));
    assert!(text(HandshakeError::NotGet).contains("\r\nAllow: GET\r\n"));
    assert!(text(HandshakeError::BadKey).ends_with("the base64 of 16 bytes"));
}

// Both

#[test]
fn finished_handshake_takes_no_more_bytes() {
    let mut failed = client(&[], &[]);
    let mut done = ServerHandshake::new(Limits::default());

    assert!(failed.receive(b"nonsense").is_err());
    assert_eq!(Err(HandshakeError::Finished), failed.receive(b"HTTP/1.1 101"));
    assert!(done.receive(&joined(&good_request())).is_ok());
    assert_eq!(Err(HandshakeError::Finished), done.receive(b""));
}

#[test]
fn debug_output_shows_no_credentials() {
    let mut lines = good_request();
    lines[0] = "GET /ws?token=secret HTTP/1.1".into();
    lines.push("Authorization: Bearer secret".into());
    let request = judge_request(&joined(&lines)).unwrap().unwrap();
    let client = client(&fields(&[("Authorization", "Bearer secret")]), &[]);
    let server = ServerHandshake::new(Limits::default());

    assert!(!format!("{request:?} {client:?} {server:?}").contains("secret"));
}

/// Feeds `bytes` in pieces of `sizes`, then the remainder; the last answer and what is left over.
fn in_pieces<T>(
    bytes: &[u8],
    sizes: &[usize],
    mut receive: impl FnMut(&[u8]) -> Result<Option<T>, HandshakeError>,
) -> (Result<Option<T>, HandshakeError>, Vec<u8>) {
    let mut rest = bytes;
    for size in sizes.iter().copied().chain([usize::MAX]) {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        let answer = receive(piece);
        if !matches!(answer, Ok(None)) {
            return (answer, rest.to_vec());
        }
    }
    (Ok(None), vec![])
}

/// A refusal's body is what came with its head, so it alone depends on the split.
fn without_body(error: HandshakeError) -> HandshakeError {
    match error {
        HandshakeError::Refused { status, headers, .. } => {
            HandshakeError::Refused { status, headers, body: vec![] }
        }
        other => other,
    }
}

proptest! {
    #[test]
    fn both_sides_agree_however_their_bytes_are_split(
        nonce: [u8; 16],
        sizes in list_of(0..80_usize, 0..12),
        tail in list_of(any::<u8>(), 0..10),
    ) {
        let limits = Limits::default();
        let headers = fields(&[("X-Name", "value, with: signs")]);
        let mut client =
            ClientHandshake::new("host", "/ws", &headers, &["a", "b"], nonce, limits).unwrap();
        let mut server = ServerHandshake::new(limits);
        let sent = [client.request(), tail.clone()].concat();
        let (request, left) = in_pieces(&sent, &sizes, |piece| server.receive(piece));
        let request = request.unwrap().unwrap();

        prop_assert_eq!(&tail, &[request.rest.clone(), left].concat());
        prop_assert!(request.headers.contains(&headers[0]));

        let answer = ServerHandshake::accept(&request, Some("b"), &headers).unwrap();
        let sent = [answer, tail.clone()].concat();
        let (upgraded, left) = in_pieces(&sent, &sizes, |piece| client.receive(piece));
        let upgraded = upgraded.unwrap().unwrap();

        prop_assert_eq!(Some("b"), upgraded.subprotocol.as_deref());
        prop_assert!(upgraded.headers.contains(&headers[0]));
        prop_assert_eq!(tail, [upgraded.rest, left].concat());
    }

    #[test]
    fn corrupted_heads_give_one_verdict_however_they_are_split(
        changes in list_of((0..200_usize, any::<u8>()), 0..4),
        sizes in list_of(0..40_usize, 0..10),
        is_answer: bool,
    ) {
        let mut bytes = if is_answer {
            let accept = format!("Sec-WebSocket-Accept: {ACCEPT}");
            answer(&["Upgrade: websocket", "Connection: Upgrade", &accept])
        } else {
            joined(&good_request())
        };
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let judge = |sizes: &[usize]| {
            let (mut client, mut server) = (client(&[], &[]), ServerHandshake::new(Limits::default()));
            let (verdict, _) = in_pieces(&bytes, sizes, |piece| {
                if is_answer {
                    client.receive(piece).map(|upgraded| upgraded.map(|done| done.headers))
                } else {
                    server.receive(piece).map(|request| request.map(|done| done.headers))
                }
            });
            verdict.map_err(without_body)
        };

        prop_assert_eq!(judge(&[]), judge(&sizes));
        prop_assert_eq!(judge(&[]), judge(&vec![1; bytes.len()]));
    }
}
