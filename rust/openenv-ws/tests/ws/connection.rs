//! RFC 6455 by section, and each state against each event.

use crate::support::{
    BINARY, CLOSE, CONTINUATION, FixedMask, PING, PONG, TEXT, close_body, feed, feed_fresh, frame,
    own_frame, peer_frame, peer_key,
};
use openenv_ws::{Connection, Error, Event, Limits, MessageKind, Role, State, Unmasked};

const ROLES: [Role; 2] = [Role::Client, Role::Server];

fn fresh(role: Role) -> Connection {
    Connection::new(role, Limits::default())
}

fn text(payload: &str) -> Event<'static> {
    Event::Message { kind: MessageKind::Text, payload: payload.as_bytes().to_vec().into() }
}

fn binary(payload: &[u8]) -> Event<'static> {
    Event::Message { kind: MessageKind::Binary, payload: payload.to_vec().into() }
}

fn closed(code: u16, reason: &str) -> Event<'static> {
    Event::Close { code: Some(code), reason: reason.into() }
}

/// A connection brought into a state.
fn in_state(role: Role, state: State) -> Connection {
    let mut connection = fresh(role);
    match state {
        State::Open => {}
        State::CloseSent => {
            connection.close(1000, "", &mut FixedMask).unwrap();
            connection.output().clear();
        }
        State::CloseReceived => {
            feed(&mut connection, [&peer_frame(role, true, CLOSE, &close_body(1000, ""))[..]]);
        }
        State::Closed => {
            feed(&mut connection, [&[0xFF][..]]);
            connection.output().clear();
        }
    }
    assert_eq!(state, connection.state());
    connection
}

// §5.2 and §5.7: framing

#[test]
fn examples_of_the_standard_are_read_as_printed() {
    let unmasked = b"\x81\x05Hello";
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    let fragmented = b"\x01\x03Hel\x80\x02lo";
    let ping = b"\x89\x05Hello";
    let pong = b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";

    assert_eq!(vec![text("Hello")], feed_fresh(Role::Client, unmasked).events);
    assert_eq!(vec![text("Hello")], feed_fresh(Role::Server, masked).events);
    assert_eq!(vec![text("Hello")], feed_fresh(Role::Client, fragmented).events);
    assert_eq!(vec![Event::Ping(b"Hello".into())], feed_fresh(Role::Client, ping).events);
    assert_eq!(vec![Event::Pong(b"Hello".into())], feed_fresh(Role::Server, pong).events);
}

#[test]
fn each_length_form_is_read() {
    for role in ROLES {
        for len in [0, 1, 125, 126, 127, 65535, 65536, 70000] {
            let payload = vec![0xA5; len];
            let outcome = feed_fresh(role, &peer_frame(role, true, BINARY, &payload));

            assert_eq!(vec![binary(&payload)], outcome.events);
        }
    }
}

#[test]
fn several_frames_in_one_read_are_taken_one_by_one() {
    for role in ROLES {
        let bytes = [
            peer_frame(role, true, TEXT, b"one"),
            peer_frame(role, true, PONG, b""),
            peer_frame(role, true, BINARY, b"\xFF"),
        ];
        let outcome = feed_fresh(role, &bytes.concat());

        assert_eq!(vec![text("one"), Event::Pong(vec![]), binary(b"\xFF")], outcome.events);
    }
}

// §5.1, §5.2: what a peer must not frame

#[test]
fn each_broken_frame_fails_the_connection_with_its_close_code() {
    let cases: [(&[u8], Error, u16); 9] = [
        (b"\xC1\x00", Error::ReservedBits, 1002),
        (b"\x83\x00", Error::ReservedOpcode, 1002),
        (b"\x09\x00", Error::FragmentedControl, 1002),
        (b"\x89\x7E\x00\x7E", Error::ControlTooLong, 1002),
        (b"\x81\x80\x00\x00\x00\x00", Error::MaskedFrame, 1002),
        (b"\x82\x7E\x00\x01", Error::NonMinimalLength, 1002),
        (b"\x82\x7F\xFF\x00\x00\x00\x00\x00\x00\x00", Error::LengthTooLarge, 1002),
        (b"\x80\x00", Error::UnexpectedContinuation, 1002),
        (b"\x01\x00\x81\x00", Error::ExpectedContinuation, 1002),
    ];
    for (bytes, error, code) in cases {
        let outcome = feed_fresh(Role::Client, bytes);
        let body = close_body(code, &error.to_string());

        assert_eq!(Some(error), outcome.error);
        assert_eq!(own_frame(Role::Client, CLOSE, &body), outcome.output);
        assert_eq!(State::Closed, outcome.state);
    }
}

#[test]
fn server_refuses_a_frame_without_mask() {
    let outcome = feed_fresh(Role::Server, b"\x81\x00");

    assert_eq!(Some(Error::UnmaskedFrame), outcome.error);
}

#[test]
fn message_above_the_limit_fails_with_1009_at_its_header() {
    let limits = Limits::default().with_max_message_bytes(5);
    let mut connection = Connection::new(Role::Client, limits);
    let outcome = feed(&mut connection, [&b"\x82\x06"[..]]);

    assert_eq!(Some(Error::MessageTooBig { limit: 5 }), outcome.error);
    assert_eq!([0x03, 0xF1], [outcome.output[6] ^ 0xA1, outcome.output[7] ^ 0xB2]);
}

// §5.4: fragmentation

#[test]
fn control_frames_are_taken_between_fragments() {
    for role in ROLES {
        let bytes = [
            peer_frame(role, false, TEXT, b"a"),
            peer_frame(role, true, PING, b"p"),
            peer_frame(role, false, CONTINUATION, b""),
            peer_frame(role, true, PONG, b"q"),
            peer_frame(role, true, CONTINUATION, b"b"),
        ];
        let outcome = feed_fresh(role, &bytes.concat());
        let expected = vec![Event::Ping(b"p".into()), Event::Pong(b"q".into()), text("ab")];

        assert_eq!(expected, outcome.events);
        assert_eq!(own_frame(role, PONG, b"p"), outcome.output);
    }
}

#[test]
fn close_between_fragments_ends_the_connection() {
    let bytes = [
        peer_frame(Role::Client, false, TEXT, b"a"),
        peer_frame(Role::Client, true, CLOSE, &close_body(1000, "")),
    ];

    assert_eq!(vec![closed(1000, "")], feed_fresh(Role::Client, &bytes.concat()).events);
}

#[test]
fn empty_fragments_make_an_empty_message() {
    let bytes = b"\x01\x00\x00\x00\x80\x00";

    assert_eq!(vec![text("")], feed_fresh(Role::Client, bytes).events);
}

// §5.5.2, §5.5.3: ping and pong

#[test]
fn ping_is_answered_with_its_own_payload() {
    for role in ROLES {
        for payload in [&b""[..], b"x", &[0x7F; 125]] {
            let outcome = feed_fresh(role, &peer_frame(role, true, PING, payload));

            assert_eq!(own_frame(role, PONG, payload), outcome.output);
        }
    }
}

#[test]
fn flood_of_pings_without_a_drain_stays_within_its_bound() {
    let limits = Limits::default().with_max_pending_control_bytes(1000);
    let mut connection = Connection::new(Role::Server, limits);
    let flood = peer_frame(Role::Server, true, PING, &[1; 125]).repeat(5000);
    feed(&mut connection, [&flood[..], &peer_frame(Role::Server, true, PING, b"last")[..]]);

    assert!(connection.output().len() <= 1000 + 127);

    connection.output().clear();

    assert_eq!(&own_frame(Role::Server, PONG, b"last"), connection.output());
}

#[test]
fn own_ping_is_a_finished_frame() {
    for role in ROLES {
        let mut connection = fresh(role);

        assert_eq!(Ok(()), connection.ping(b"hi", &mut FixedMask));
        assert_eq!(&own_frame(role, PING, b"hi"), connection.output());
        assert_eq!(Err(Error::OversizedControl), connection.ping(&[0; 126], &mut FixedMask));
    }
}

// §5.5.1, §7: closing

#[test]
fn close_is_echoed_with_its_code_and_the_state_follows_the_output() {
    for role in ROLES {
        let bytes = peer_frame(role, true, CLOSE, &close_body(4000, "why"));
        let mut connection = fresh(role);
        let outcome = feed(&mut connection, [&bytes[..]]);

        assert_eq!(vec![closed(4000, "why")], outcome.events);
        assert_eq!(own_frame(role, CLOSE, &close_body(4000, "")), outcome.output);
        assert_eq!(State::CloseReceived, outcome.state);

        connection.output().clear();

        assert_eq!(State::Closed, connection.state());
        assert_eq!(Ok(()), connection.eof());
    }
}

#[test]
fn close_without_a_body_is_echoed_without_a_body() {
    let outcome = feed_fresh(Role::Server, &peer_frame(Role::Server, true, CLOSE, b""));

    assert_eq!(vec![Event::Close { code: None, reason: String::new() }], outcome.events);
    assert_eq!(b"\x88\x00".to_vec(), outcome.output);
}

#[test]
fn each_broken_close_fails_the_connection() {
    let cases: [(&[u8], Error); 5] = [
        (b"\x03", Error::InvalidClosePayload),
        (&[0x03, 0xED], Error::InvalidCloseCode),
        (&[0x03, 0xEE], Error::InvalidCloseCode),
        (&[0x0B, 0xB7], Error::InvalidCloseCode),
        (b"\x03\xE8\xCE\xBA\xE1\xBD", Error::InvalidUtf8),
    ];
    for (body, error) in cases {
        let outcome = feed_fresh(Role::Server, &peer_frame(Role::Server, true, CLOSE, body));

        assert_eq!((vec![], Some(error)), (outcome.events, outcome.error));
    }
}

#[test]
fn after_own_close_messages_arrive_until_the_peers_close() {
    for role in ROLES {
        let mut connection = in_state(role, State::CloseSent);
        let bytes = [
            peer_frame(role, true, TEXT, b"late"),
            peer_frame(role, true, CLOSE, &close_body(1000, "")),
            peer_frame(role, true, TEXT, b"ignored"),
        ];
        let outcome = feed(&mut connection, [&bytes.concat()[..]]);

        assert_eq!(vec![text("late"), closed(1000, "")], outcome.events);
        assert_eq!((vec![], State::Closed), (outcome.output, outcome.state));
        assert_eq!(Ok(()), connection.eof());
    }
}

#[test]
fn pongs_queued_before_a_close_are_written_before_it() {
    let bytes = [
        peer_frame(Role::Server, true, PING, b"p"),
        peer_frame(Role::Server, true, CLOSE, &close_body(1001, "")),
    ];
    let expected = [
        own_frame(Role::Server, PONG, b"p"),
        own_frame(Role::Server, CLOSE, &close_body(1001, "")),
    ];

    assert_eq!(expected.concat(), feed_fresh(Role::Server, &bytes.concat()).output);
}

#[test]
fn second_close_of_the_caller_changes_nothing() {
    let mut connection = fresh(Role::Server);

    assert_eq!(Ok(()), connection.close(1001, "bye", &mut Unmasked));
    assert_eq!(Ok(()), connection.close(1000, "", &mut Unmasked));
    assert_eq!(&own_frame(Role::Server, CLOSE, &close_body(1001, "bye")), connection.output());
}

#[test]
fn close_that_cannot_be_sent_leaves_the_connection_open() {
    let mut connection = fresh(Role::Client);
    let long = "x".repeat(124);

    assert_eq!(Err(Error::UnsendableCloseCode), connection.close(1005, "", &mut FixedMask));
    assert_eq!(Err(Error::OversizedControl), connection.close(1000, &long, &mut FixedMask));
    assert_eq!((State::Open, true), (connection.state(), connection.output().is_empty()));
}

#[test]
fn failure_after_own_close_sends_no_second_close() {
    let mut connection = in_state(Role::Client, State::CloseSent);
    let outcome = feed(&mut connection, [&b"\x83\x00"[..]]);

    assert_eq!(Some(Error::ReservedOpcode), outcome.error);
    assert_eq!((vec![], State::Closed), (outcome.output, outcome.state));
}

#[test]
fn input_after_a_failure_is_ignored() {
    let mut connection = fresh(Role::Client);
    let outcome = feed(&mut connection, [&b"\x83\x00"[..], b"\x81\x02hi", b"\x83\x00"]);

    assert_eq!((vec![], Some(Error::ReservedOpcode)), (outcome.events, outcome.error));
}

// §7.1.5: the end of the transport, in each state

#[test]
fn end_of_transport_is_an_error_unless_the_peer_closed() {
    for role in ROLES {
        for (state, expected) in [
            (State::Open, Err(Error::UnexpectedEof)),
            (State::CloseSent, Err(Error::UnexpectedEof)),
            (State::CloseReceived, Ok(())),
            (State::Closed, Ok(())),
        ] {
            let mut connection = in_state(role, state);

            assert_eq!(expected, connection.eof(), "{state:?}");
            assert_eq!((State::Closed, Ok(())), (connection.state(), connection.eof()));
        }
    }
}

// §8.1: UTF-8

#[test]
fn text_across_fragments_may_be_cut_inside_a_character() {
    for role in ROLES {
        let euro = "€".as_bytes();
        let bytes = [
            peer_frame(role, false, TEXT, &euro[..1]),
            peer_frame(role, false, CONTINUATION, &euro[1..2]),
            peer_frame(role, true, CONTINUATION, &euro[2..]),
        ];

        assert_eq!(vec![text("€")], feed_fresh(role, &bytes.concat()).events);
    }
}

#[test]
fn bad_text_fails_inside_the_frame_before_it_is_complete() {
    for role in ROLES {
        let bad = peer_frame(role, false, TEXT, b"good\xF4\x90 and much more");
        let header_bytes = bad.len() - 20;
        let upto_bad_byte = &bad[..header_bytes + 6];
        let outcome = feed_fresh(role, upto_bad_byte);

        assert_eq!(Some(Error::InvalidUtf8), outcome.error);
        assert_eq!(1007, Error::InvalidUtf8.close_code());
    }
}

#[test]
fn text_that_ends_inside_a_character_fails() {
    for bytes in [&b"\x81\x02\xE2\x82"[..], b"\x01\x02\xE2\x82\x80\x00"] {
        assert_eq!(Some(Error::InvalidUtf8), feed_fresh(Role::Client, bytes).error);
    }
}

#[test]
fn binary_may_be_any_bytes() {
    assert_eq!(vec![binary(b"\xFF\xC0")], feed_fresh(Role::Client, b"\x82\x02\xFF\xC0").events);
}

// Sending

#[test]
fn sealed_frame_equals_the_plain_one_for_each_length_form() {
    for role in ROLES {
        for len in [0, 1, 125, 126, 65535, 65536] {
            let payload = vec![0x5A; len];
            let mut connection = fresh(role);
            let mut out = b"before".to_vec();
            let start = connection.begin(&mut out);
            out.extend_from_slice(&payload);
            let range =
                connection.seal(start, MessageKind::Binary, &mut out, &mut FixedMask).unwrap();

            assert_eq!(own_frame(role, BINARY, &payload), out[range.clone()]);
            assert_eq!((out.len(), &b"before"[..]), (range.end, &out[..6]));
        }
    }
}

#[test]
fn appended_frame_equals_the_sealed_one() {
    for role in ROLES {
        let mut out = Vec::new();
        fresh(role).append(MessageKind::Text, "grüß".as_bytes(), &mut out, &mut FixedMask).unwrap();

        assert_eq!(own_frame(role, TEXT, "grüß".as_bytes()), out);
    }
}

#[test]
fn frame_sealed_in_another_buffer_is_refused() {
    let mut connection = fresh(Role::Client);
    let start = connection.begin(&mut vec![0; 50]);
    let mut other = vec![7; 20];
    let result = connection.seal(start, MessageKind::Text, &mut other, &mut FixedMask);

    assert_eq!(Err(Error::ForeignFrameStart), result);
    assert_eq!(vec![7; 20], other);
}

#[test]
fn nothing_but_a_close_is_sent_unless_the_state_is_open() {
    for role in ROLES {
        for state in [State::CloseSent, State::CloseReceived, State::Closed] {
            let mut connection = in_state(role, state);
            let before = connection.output().clone();
            let mut out = Vec::new();
            let start = connection.begin(&mut out);
            let sealed = connection.seal(start, MessageKind::Text, &mut out, &mut FixedMask);
            let appended =
                connection.append(MessageKind::Text, b"", &mut Vec::new(), &mut FixedMask);

            assert_eq!(Err(Error::ConnectionClosed), sealed.map(|_| ()));
            assert_eq!(Err(Error::ConnectionClosed), appended);
            assert_eq!(Err(Error::ConnectionClosed), connection.ping(b"", &mut FixedMask));
            assert_eq!(Ok(()), connection.close(1000, "", &mut FixedMask));
            assert_eq!((&before, state), (&connection.output().clone(), connection.state()));
        }
    }
}

// Each state against each frame

/// What a frame does in a state: events, whether it fails, frames answered, the state after it.
type Row = (State, u8, usize, bool, usize, State);

#[test]
fn each_state_meets_each_frame_as_the_table_says() {
    use State::{CloseReceived, CloseSent, Closed, Open};
    const BAD: u8 = 3;
    let table: [Row; 24] = [
        (Open, TEXT, 1, false, 0, Open),
        (Open, BINARY, 1, false, 0, Open),
        (Open, PING, 1, false, 1, Open),
        (Open, PONG, 1, false, 0, Open),
        (Open, CLOSE, 1, false, 1, CloseReceived),
        (Open, BAD, 0, true, 1, Closed),
        (CloseSent, TEXT, 1, false, 0, CloseSent),
        (CloseSent, BINARY, 1, false, 0, CloseSent),
        (CloseSent, PING, 1, false, 0, CloseSent),
        (CloseSent, PONG, 1, false, 0, CloseSent),
        (CloseSent, CLOSE, 1, false, 0, Closed),
        (CloseSent, BAD, 0, true, 0, Closed),
        (CloseReceived, TEXT, 0, false, 0, CloseReceived),
        (CloseReceived, BINARY, 0, false, 0, CloseReceived),
        (CloseReceived, PING, 0, false, 0, CloseReceived),
        (CloseReceived, PONG, 0, false, 0, CloseReceived),
        (CloseReceived, CLOSE, 0, false, 0, CloseReceived),
        (CloseReceived, BAD, 0, false, 0, CloseReceived),
        (Closed, TEXT, 0, false, 0, Closed),
        (Closed, BINARY, 0, false, 0, Closed),
        (Closed, PING, 0, false, 0, Closed),
        (Closed, PONG, 0, false, 0, Closed),
        (Closed, CLOSE, 0, false, 0, Closed),
        (Closed, BAD, 0, false, 0, Closed),
    ];
    for role in ROLES {
        for row @ (state, opcode, events, fails, answers, after) in table {
            let mut connection = in_state(role, state);
            let waiting = connection.output().len();
            let bytes = frame(true, opcode, b"", peer_key(role));
            let outcome = feed(&mut connection, [&bytes[..]]);
            let has_answer = outcome.output.len() > waiting;

            assert_eq!(events, outcome.events.len(), "{row:?}");
            assert_eq!((fails, answers == 1), (outcome.error.is_some(), has_answer), "{row:?}");
            assert_eq!(after, outcome.state, "{row:?}");
        }
    }
}
