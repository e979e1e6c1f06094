//! A real client endpoint against a real server endpoint, over a link with weather and a clock.
//!
//! What is asserted is the promise of the whole: each request gets its own answer or one named
//! failure, whatever the link does to the bytes.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test")]

use openenv_endpoint::{
    ClientConfig, ClientEndpoint, ClientEvent, ClientLimits, Failure, KeepaliveConfig, Limits,
    MaskSource, Op, Phase, ServerConfig, ServerEndpoint, ServerEvent, ServerLimits,
};
use openenv_sim::{Arrival, Clock, Cut, CutKind, Link, Peer, Random, Stop, Weather, run_until};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

struct Masks(Random);

impl MaskSource for Masks {
    fn next_mask(&mut self) -> [u8; 4] {
        let mut mask = [0; 4];
        self.0.fill(&mut mask);
        mask
    }
}

/// Steps 0, 1, 2, … one after the other, all submitted at once; then says goodbye.
struct Client {
    endpoint: ClientEndpoint<usize>,
    masks: Masks,
    steps: usize,
    timeout_ns: u64,
    connected: bool,
    outcomes: Vec<Option<Result<Vec<u8>, Failure>>>,
}

impl Client {
    fn new(seed: u64, steps: usize, timeout_ns: u64, keepalive: KeepaliveConfig) -> Self {
        let config = ClientConfig {
            host: "host".to_owned(),
            target: "/ws".to_owned(),
            headers: Vec::new(),
            limits: Limits::default(),
            session_limits: ClientLimits::default(),
            keepalive,
        };
        let mut endpoint = ClientEndpoint::new(&config, [7; 16]).unwrap();
        endpoint.connect(60 * SECOND);
        let outcomes = vec![None; steps];
        let masks = Masks(Random::new(seed));
        Self { endpoint, masks, steps, timeout_ns, connected: false, outcomes }
    }

    fn take(&mut self, events: Vec<ClientEvent<'_, usize>>, now_ns: u64) {
        for event in events {
            match event {
                ClientEvent::Opened { .. } => self.submit_all(now_ns),
                ClientEvent::Answer { tag, payload, .. } => {
                    self.settle(tag, Ok(payload.into_owned()));
                }
                ClientEvent::Failed { tag, failure, .. } => self.settle(tag, Err(failure)),
                _ => {}
            }
        }
        if self.connected && self.endpoint.is_idle() && self.outcomes.iter().all(Option::is_some) {
            self.endpoint.close(1000, now_ns, &mut self.masks, &mut Vec::new());
        }
    }

    fn settle(&mut self, tag: usize, outcome: Result<Vec<u8>, Failure>) {
        let before = self.outcomes[tag].replace(outcome);

        assert_eq!(None, before, "request {tag} was settled twice");
    }

    fn submit_all(&mut self, now_ns: u64) {
        self.connected = true;
        for tag in 0..self.steps {
            let mut frame = Vec::new();
            let begun = self.endpoint.begin(Op::Step, &mut frame);
            frame.extend_from_slice(format!("{{\"n\":{tag}}}").as_bytes());
            let deadline_ns = Some(now_ns + self.timeout_ns);
            let (_, now) =
                self.endpoint.submit(begun, frame, deadline_ns, tag, &mut self.masks).unwrap();
            if let Some(frame) = now {
                self.endpoint.output().extend_from_slice(&frame);
            }
        }
    }
}

impl Peer for Client {
    fn receive(&mut self, arrival: Arrival, now_ns: u64, out: &mut Vec<u8>) {
        let mut events = Vec::new();
        match &arrival {
            Arrival::Bytes(bytes) => {
                self.endpoint.receive(bytes, now_ns, &mut self.masks, &mut events);
            }
            Arrival::Eof | Arrival::Lost => self.endpoint.eof(&mut events),
        }
        let events = events.into_iter().map(ClientEvent::into_owned).collect();
        self.take(events, now_ns);
        out.append(self.endpoint.output());
    }

    fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let mut events = Vec::new();
        self.endpoint.tick(now_ns, &mut self.masks, &mut events);
        self.take(events, now_ns);
        out.append(self.endpoint.output());
    }

    fn next_timeout_ns(&self) -> Option<u64> {
        self.endpoint.next_timeout()
    }

    fn is_finished(&self) -> bool {
        self.endpoint.phase() == Phase::Closed
    }
}

/// Answers each message with itself, `delay_ns` later.
struct Server {
    endpoint: ServerEndpoint,
    delay_ns: u64,
    due: Option<(u64, Vec<u8>)>,
    seen: Vec<Vec<u8>>,
}

impl Server {
    fn new(delay_ns: u64) -> Self {
        let config = ServerConfig {
            limits: Limits::default(),
            session_limits: ServerLimits::default(),
            keepalive: KeepaliveConfig::OFF,
            handshake_timeout_ns: 10 * SECOND,
        };
        Self { endpoint: ServerEndpoint::new(config, 0), delay_ns, due: None, seen: Vec::new() }
    }

    fn take(&mut self, events: Vec<ServerEvent>, now_ns: u64) {
        for event in events {
            match event {
                ServerEvent::Upgrade { target, .. } => {
                    assert_eq!("/ws", target);
                    let mut events = Vec::new();
                    self.endpoint.accept(None, &[], now_ns, &mut events).unwrap();
                    self.take(events, now_ns);
                }
                ServerEvent::Message(message) if message == br#"{"type":"close"}"# => {
                    self.endpoint.close(1000, "", now_ns, &mut Vec::new());
                }
                ServerEvent::Message(message) => {
                    assert_eq!(None, self.due, "two messages execute at once");
                    self.seen.push(message.clone());
                    self.due = Some((now_ns + self.delay_ns, message));
                }
                _ => {}
            }
        }
    }
}

impl Peer for Server {
    fn receive(&mut self, arrival: Arrival, now_ns: u64, out: &mut Vec<u8>) {
        let mut events = Vec::new();
        match arrival {
            Arrival::Bytes(bytes) => self.endpoint.receive(&bytes, now_ns, &mut events),
            Arrival::Eof | Arrival::Lost => self.endpoint.eof(&mut events),
        }
        self.take(events, now_ns);
        out.append(self.endpoint.output());
    }

    fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let mut events = Vec::new();
        while let Some((_, message)) = self.due.take_if(|(at_ns, _)| *at_ns <= now_ns) {
            self.endpoint.answer(Some(&message), now_ns, &mut events);
            self.take(core::mem::take(&mut events), now_ns);
        }
        self.endpoint.tick(now_ns, &mut events);
        self.take(events, now_ns);
        out.append(self.endpoint.output());
    }

    fn next_timeout_ns(&self) -> Option<u64> {
        let due_ns = self.due.as_ref().map(|(at_ns, _)| *at_ns);
        due_ns.into_iter().chain(self.endpoint.next_timeout()).min()
    }

    fn is_finished(&self) -> bool {
        self.endpoint.phase() == openenv_endpoint::ServerPhase::Closed
    }
}

fn answer_of(tag: usize) -> Vec<u8> {
    format!("{{\"type\":\"step\",\"data\":{{\"n\":{tag}}}}}").into_bytes()
}

#[test]
fn each_step_gets_its_own_answer_in_calm_weather() {
    let (mut client, mut server) =
        (Client::new(1, 5, SECOND, KeepaliveConfig::OFF), Server::new(0));
    let mut link = Link::new(1, Weather::CALM);

    let stop = run_until(HOUR, &mut Clock::new(), &mut link, &mut client, &mut server);

    assert_eq!(Stop::Quiet, stop);
    let expected: Vec<_> = (0..5).map(|tag| Some(Ok(answer_of(tag)))).collect();
    assert_eq!(expected, client.outcomes);
    assert_eq!(Phase::Closed, client.endpoint.phase());
}

#[test]
fn a_step_that_outlives_its_deadline_never_answers_the_next() {
    // Each answer takes 3 s; every request waits 4 s from the start, so the first is answered,
    // the second expires in flight, and the third is never sent.
    let (mut client, mut server) =
        (Client::new(1, 3, 4 * SECOND, KeepaliveConfig::OFF), Server::new(3 * SECOND));
    let mut link = Link::new(1, Weather::CALM);

    run_until(HOUR, &mut Clock::new(), &mut link, &mut client, &mut server);

    let expected =
        vec![Some(Ok(answer_of(0))), Some(Err(Failure::Expired)), Some(Err(Failure::Expired))];
    assert_eq!(expected, client.outcomes);
    assert_eq!(vec![answer_of(0), answer_of(1)], server.seen);
    assert_eq!(1, client.endpoint.late_answers());
}

#[test]
fn a_silent_server_is_given_up_by_pings() {
    let keepalive =
        KeepaliveConfig { interval_ns: Some(20 * SECOND), timeout_ns: Some(20 * SECOND) };
    let (mut client, mut server) = (Client::new(3, 1, HOUR, keepalive), Server::new(30 * SECOND));
    let cut = Some(Cut { kind: CutKind::Silent, within_bytes: 400 });
    let mut link = Link::new(3, Weather { cut, ..Weather::CALM });
    let mut clock = Clock::new();

    run_until(2 * HOUR, &mut clock, &mut link, &mut client, &mut server);

    assert_eq!(Phase::Closed, client.endpoint.phase());
    assert!(client.outcomes.iter().all(|outcome| *outcome != Some(Ok(Vec::new()))));
    assert!(clock.now_ns() <= 2 * HOUR);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn answers_belong_to_their_requests_in_any_weather(
        seed in any::<u64>(),
        steps in 1_usize..12,
        delay_ms in 0_u64..2_000,
        cut in prop::option::of((0_u64..3_000, any::<bool>())),
    ) {
        let keepalive =
            KeepaliveConfig { interval_ns: Some(20 * SECOND), timeout_ns: Some(20 * SECOND) };
        let mut client = Client::new(seed, steps, 5 * SECOND, keepalive);
        let mut server = Server::new(delay_ms * 1_000_000);
        let cut = cut.map(|(within_bytes, reset)| Cut {
            kind: if reset { CutKind::Reset } else { CutKind::Silent },
            within_bytes,
        });
        let mut link = Link::new(seed, Weather { cut, ..Weather::ROUGH });

        let stop = run_until(HOUR, &mut Clock::new(), &mut link, &mut client, &mut server);

        prop_assert_ne!(Stop::Stuck, stop);
        prop_assert_eq!(Phase::Closed, client.endpoint.phase());
        for (tag, outcome) in client.outcomes.iter().enumerate() {
            match outcome {
                Some(Ok(answer)) => prop_assert_eq!(&answer_of(tag), answer),
                Some(Err(_)) => {}
                // Never submitted: the link was cut before the upgrade was answered.
                None => prop_assert!(!client.connected),
            }
        }
        let sent: Vec<_> = (0..server.seen.len()).map(answer_of).collect();
        prop_assert_eq!(sent, server.seen, "requests arrive once and in order");
    }
}
