//! Each phase of the client endpoint against each thing that can happen to it.
#![expect(clippy::unwrap_used, reason = "a test")]

use openenv_endpoint::{
    Cause, ClientConfig, ClientEndpoint, ClientEvent, ClientLimits, Failure, KeepaliveConfig,
    Limits, MaskSource, Op, Phase, ServerConfig, ServerEndpoint, ServerEvent, ServerLimits,
    ServerPhase, SubmitError,
};

const SECOND: u64 = 1_000_000_000;
const CONNECT_DEADLINE: u64 = 10 * SECOND;

struct Zero;

impl MaskSource for Zero {
    fn next_mask(&mut self) -> [u8; 4] {
        [0; 4]
    }
}

type Client = ClientEndpoint<&'static str>;

fn idle() -> Client {
    let config = ClientConfig {
        host: "h".to_owned(),
        target: "/ws".to_owned(),
        headers: Vec::new(),
        limits: Limits::default(),
        session_limits: ClientLimits::default(),
        keepalive: KeepaliveConfig::OFF,
    };
    ClientEndpoint::new(&config, [0; 16]).unwrap()
}

fn connecting() -> Client {
    let mut client = idle();
    client.connect(CONNECT_DEADLINE);
    client
}

/// A server endpoint on a fresh transport.
fn waiting() -> ServerEndpoint {
    let config = ServerConfig {
        limits: Limits::default(),
        session_limits: ServerLimits::default(),
        keepalive: KeepaliveConfig::OFF,
        handshake_timeout_ns: SECOND,
    };
    ServerEndpoint::new(config, 0)
}

/// A server endpoint that has accepted `request`.
fn accepted(request: &[u8]) -> ServerEndpoint {
    let mut server = waiting();
    server.receive(request, 0, &mut Vec::new());
    server.accept(None, &[], 0, &mut Vec::new()).unwrap();
    server
}

fn open() -> (Client, ServerEndpoint) {
    let mut client = connecting();
    let mut server = accepted(&core::mem::take(client.output()));
    let answer = core::mem::take(server.output());
    let events = receive(&mut client, &answer);
    assert!(matches!(events.as_slice(), [ClientEvent::Opened { .. }]));
    (client, server)
}

fn closing() -> (Client, ServerEndpoint) {
    let (mut client, server) = open();
    client.close(1000, 0, &mut Zero, &mut Vec::new());
    (client, server)
}

fn closed() -> Client {
    let (mut client, _) = open();
    client.eof(&mut Vec::new());
    client
}

fn receive(client: &mut Client, bytes: &[u8]) -> Vec<ClientEvent<'static, &'static str>> {
    let mut events = Vec::new();
    client.receive(bytes, 0, &mut Zero, &mut events);
    events.into_iter().map(ClientEvent::into_owned).collect()
}

fn step(client: &mut Client, tag: &'static str) -> Result<Option<Vec<u8>>, SubmitError> {
    let mut frame = Vec::new();
    let begun = client.begin(Op::Step, &mut frame);
    frame.extend_from_slice(b"{}");
    client.submit(begun, frame, Some(SECOND), tag, &mut Zero).map(|(_, frame)| frame)
}

/// An unmasked text frame of less than 126 bytes.
fn text(payload: &str) -> Vec<u8> {
    let mut frame = vec![0x81, u8::try_from(payload.len()).unwrap()];
    frame.extend_from_slice(payload.as_bytes());
    frame
}

#[test]
fn requests_are_taken_in_open_only() {
    assert_eq!(Err(SubmitError::NotOpen), step(&mut idle(), "a"));
    assert_eq!(Err(SubmitError::NotOpen), step(&mut connecting(), "a"));
    assert!(step(&mut open().0, "a").unwrap().is_some());
    assert_eq!(Err(SubmitError::NotOpen), step(&mut closing().0, "a"));
    assert_eq!(Err(SubmitError::NotOpen), step(&mut closed(), "a"));
}

#[test]
fn the_end_of_the_transport_closes_every_phase_but_keeps_the_first_cause() {
    let cases = [
        (idle(), Cause::Ended),
        (connecting(), Cause::Ended),
        (open().0, Cause::Ended),
        (closing().0, Cause::ClosedByCaller),
        (closed(), Cause::Ended),
    ];
    for (mut client, cause) in cases {
        client.eof(&mut Vec::new());

        assert_eq!((Phase::Closed, Some(&cause)), (client.phase(), client.cause()));
    }
}

#[test]
fn a_close_by_the_caller_is_a_handshake_only_when_open() {
    for mut client in [idle(), connecting()] {
        client.output().clear();
        client.close(1000, 0, &mut Zero, &mut Vec::new());

        assert_eq!(Phase::Closed, client.phase());
        assert!(client.output().is_empty());
    }
    let (mut client, mut server) = closing();
    assert_eq!(Phase::Closing, client.phase());

    let mut events = Vec::new();
    server.receive(client.output(), 0, &mut events);

    let goodbye = ServerEvent::Message(br#"{"type":"close"}"#.to_vec());
    assert_eq!(vec![goodbye, ServerEvent::Closed], events);
    assert_eq!(ServerPhase::Closed, server.phase());
    assert_eq!(vec![ClientEvent::Closed], receive(&mut client, server.output()));
}

#[test]
fn timers_fire_in_their_phase() {
    let mut client = connecting();
    assert_eq!(Some(CONNECT_DEADLINE), client.next_timeout());
    client.tick(CONNECT_DEADLINE - 1, &mut Zero, &mut Vec::new());
    assert_eq!(Phase::Connecting, client.phase());
    client.tick(CONNECT_DEADLINE, &mut Zero, &mut Vec::new());
    assert_eq!(Some(&Cause::ConnectTimedOut), client.cause());

    let (mut client, _) = open();
    assert_eq!(None, client.next_timeout());
    step(&mut client, "late").unwrap();
    assert_eq!(Some(SECOND), client.next_timeout());
    let mut events = Vec::new();
    client.tick(SECOND, &mut Zero, &mut events);
    let expired = ClientEvent::Failed { tag: "late", op: Op::Step, failure: Failure::Expired };
    assert_eq!(vec![expired], events);
    assert_eq!((1, Phase::Open), (client.owed(), client.phase()));

    let (mut client, _) = closing();
    let deadline_ns = client.next_timeout().unwrap();
    client.tick(deadline_ns, &mut Zero, &mut Vec::new());
    assert_eq!(Phase::Closed, client.phase());
    assert_eq!(None, closed().next_timeout());
}

#[test]
fn the_end_fails_what_waits_in_order_and_once() {
    let (mut client, _) = open();
    step(&mut client, "in flight").unwrap();
    assert_eq!(None, step(&mut client, "queued").unwrap());
    let mut events = Vec::new();

    client.eof(&mut events);
    client.eof(&mut events);

    let failed = |tag| ClientEvent::Failed { tag, op: Op::Step, failure: Failure::Closed };
    assert_eq!(vec![failed("in flight"), failed("queued"), ClientEvent::Closed], events);
}

#[test]
fn an_unasked_error_is_the_servers_last_word() {
    let (mut client, _) = open();
    let refusal = r#"{"type":"error","data":{"code":"CAPACITY_REACHED"}}"#;

    let events = receive(&mut client, &text(refusal));

    assert_eq!(vec![ClientEvent::Refused { payload: refusal.as_bytes().to_vec().into() }], events);
    assert_eq!(Phase::Open, client.phase());
}

#[test]
fn an_unasked_answer_ends_the_connection() {
    let (mut client, _) = open();

    let events = receive(&mut client, &text(r#"{"type":"observation","data":{}}"#));

    assert_eq!(vec![ClientEvent::Closed], events);
    assert_eq!(Some(&Cause::UnsolicitedAnswer), client.cause());
}

#[test]
fn what_follows_the_upgrade_in_one_read_is_not_lost() {
    let mut client = connecting();
    let mut server = accepted(&core::mem::take(client.output()));
    server.send(br#"{"type":"error","data":{}}"#);

    let events = receive(&mut client, &core::mem::take(server.output()));

    assert!(matches!(events.as_slice(), [ClientEvent::Opened { .. }, ClientEvent::Refused { .. }]));
}

#[test]
fn a_message_the_server_would_refuse_is_not_sent() {
    let (mut client, _) = open();
    client.set_peer_max_message_bytes(24);

    let refused = step(&mut client, "a");

    assert_eq!(Err(SubmitError::TooLong { bytes: 25, limit: 24 }), refused);
    client.set_peer_max_message_bytes(25);
    assert!(step(&mut client, "b").unwrap().is_some());
}

#[test]
fn a_server_rejects_in_deciding_only() {
    let mut request = connecting();
    let mut server = waiting();
    assert!(server.reject(403, "Forbidden", b"", &mut Vec::new()).is_err());
    server.receive(request.output(), 0, &mut Vec::new());
    assert_eq!(ServerPhase::Deciding, server.phase());

    server.reject(403, "Forbidden", b"no", &mut Vec::new()).unwrap();

    assert!(server.output().starts_with(b"HTTP/1.1 403 Forbidden\r\n"));
    assert_eq!(ServerPhase::Closed, server.phase());
    assert!(server.accept(None, &[], 0, &mut Vec::new()).is_err());
}

#[test]
fn a_server_gives_a_slow_upgrade_up() {
    let mut server = waiting();
    server.receive(b"GET /ws HTTP/1.1\r\n", 0, &mut Vec::new());
    let mut events = Vec::new();

    server.tick(SECOND, &mut events);

    assert_eq!(vec![ServerEvent::Closed], events);
    assert_eq!(Some(&Cause::ConnectTimedOut), server.cause());
}

#[test]
fn a_server_writes_messages_in_open_only() {
    let mut request = connecting();
    let config = ServerConfig {
        limits: Limits::default(),
        session_limits: ServerLimits::default(),
        keepalive: KeepaliveConfig::OFF,
        handshake_timeout_ns: SECOND,
    };
    let handshake = ServerEndpoint::new(config, 0);
    let mut deciding = ServerEndpoint::new(config, 0);
    deciding.receive(request.output(), 0, &mut Vec::new());
    let mut closing = accepted(request.output());
    closing.close(1000, "", 0, &mut Vec::new());
    let mut ended = accepted(request.output());
    ended.eof(&mut Vec::new());
    for mut server in [handshake, deciding, closing, ended] {
        server.output().clear();

        server.send(b"{}");
        server.answer(Some(b"{}"), 0, &mut Vec::new());

        let phase = server.phase();
        assert_eq!(Vec::<u8>::new(), *server.output(), "{phase:?}");
    }
}
