//! For all inputs: any split of the bytes gives the same events, and hostile bytes do no harm.

use openenv_ws::{Connection, Event, Limits, MessageKind, Role, State};
use proptest::{collection::vec as list_of, prelude::*, sample::Index};

use crate::support::{
    BINARY, CLOSE, CONTINUATION, FixedMask, Outcome, PING, PONG, TEXT, close_body, feed, own_frame,
    peer_frame,
};

/// One thing a peer does.
#[derive(Clone, Debug)]
enum Deed {
    Message { is_text: bool, payload: Vec<u8>, cuts: Vec<Index>, between: Vec<Self> },
    Ping(Vec<u8>),
    Pong(Vec<u8>),
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Client), Just(Role::Server)]
}

fn control() -> impl Strategy<Value = Deed> {
    let payload = || list_of(any::<u8>(), 0..=125);
    prop_oneof![payload().prop_map(Deed::Ping), payload().prop_map(Deed::Pong)]
}

/// Messages around the borders of the length forms, mostly small.
fn payload() -> impl Strategy<Value = (bool, Vec<u8>)> {
    prop_oneof![
        4 => "\\PC{0,40}".prop_map(|text| (true, text.into_bytes())),
        4 => list_of(any::<u8>(), 0..40).prop_map(|bytes| (false, bytes)),
        1 => (120..140_usize).prop_map(|len| (true, vec![b'x'; len])),
        1 => (65_530..65_545_usize).prop_map(|len| (false, vec![0xFF; len])),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    let message = (payload(), list_of(any::<Index>(), 0..4), list_of(control(), 0..3)).prop_map(
        |((is_text, payload), cuts, between)| Deed::Message { is_text, payload, cuts, between },
    );
    prop_oneof![3 => message, 1 => control()]
}

impl Deed {
    /// The frames of this deed, as the peer of `role` sends them.
    fn bytes(&self, role: Role) -> Vec<u8> {
        match self {
            Self::Ping(payload) => peer_frame(role, true, PING, payload),
            Self::Pong(payload) => peer_frame(role, true, PONG, payload),
            Self::Message { is_text, payload, cuts, between } => {
                let opcode = if *is_text { TEXT } else { BINARY };
                let fragments = fragments(payload, cuts);
                let last = fragments.len() - 1;
                let mut out = Vec::new();
                for (i, fragment) in fragments.into_iter().enumerate() {
                    let opcode = if i == 0 { opcode } else { CONTINUATION };
                    out.extend(peer_frame(role, i == last, opcode, fragment));
                    if i == 0 && last > 0 {
                        out.extend(between.iter().flat_map(|deed| deed.bytes(role)));
                    }
                }
                out
            }
        }
    }

    /// The events that this deed must come to.
    fn events(&self) -> Vec<Event<'static>> {
        match self {
            Self::Ping(payload) => vec![Event::Ping(payload.clone())],
            Self::Pong(payload) => vec![Event::Pong(payload.clone())],
            Self::Message { is_text, payload, cuts, between } => {
                let kind = if *is_text { MessageKind::Text } else { MessageKind::Binary };
                let is_fragmented = !cuts.is_empty();
                let between = between.iter().filter(|_| is_fragmented).flat_map(Self::events);
                let message = Event::Message { kind, payload: payload.clone().into() };
                between.chain([message]).collect()
            }
        }
    }
}

/// Cuts a payload anywhere, characters not minded; there may be empty fragments.
fn fragments<'p>(payload: &'p [u8], cuts: &[Index]) -> Vec<&'p [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(payload.len() + 1)).collect();
    places.sort_unstable();
    let mut fragments = Vec::new();
    let mut from = 0;
    for place in places.into_iter().chain([payload.len()]) {
        fragments.push(&payload[from..place]);
        from = place;
    }
    fragments
}

/// The pongs that `events` ask for.
fn pongs(role: Role, events: &[Event<'_>]) -> Vec<u8> {
    let pong = |event: &Event<'_>| match event {
        Event::Ping(payload) => own_frame(role, PONG, payload),
        Event::Message { .. } | Event::Pong(_) | Event::Close { .. } => vec![],
    };
    events.iter().flat_map(pong).collect()
}

fn connection(role: Role) -> Connection {
    Connection::new(role, Limits::default().with_max_message_bytes(200_000))
}

fn at_once(role: Role, bytes: &[u8]) -> Outcome {
    feed(&mut connection(role), [bytes])
}

fn byte_by_byte(role: Role, bytes: &[u8]) -> Outcome {
    feed(&mut connection(role), bytes.chunks(1))
}

fn in_pieces(role: Role, bytes: &[u8], cuts: &[Index]) -> Outcome {
    feed(&mut connection(role), fragments(bytes, cuts))
}

/// Bytes that look like frames, so that tests of hostile input get past the first byte.
fn hostile(role: Role) -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        8 => prop::sample::select(vec![0x00_u8, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A]),
        1 => any::<u8>(),
    ];
    let second = prop_oneof![8 => 0..=20_u8, 1 => any::<u8>()];
    let mask_bit = if role == Role::Server { 0x80 } else { 0 };
    let frame =
        (first, second, list_of(any::<u8>(), 0..24)).prop_map(move |(first, second, body)| {
            let mut bytes = vec![first, second | mask_bit];
            bytes.extend(body);
            bytes
        });
    prop_oneof![
        list_of(any::<u8>(), 0..60),
        list_of(frame, 0..4).prop_map(|frames| frames.concat()),
    ]
}

fn role_and_hostile() -> impl Strategy<Value = (Role, Vec<u8>)> {
    role().prop_flat_map(|role| (Just(role), hostile(role)))
}

/// Good frames with some bytes changed, so that failures come late.
fn corrupted() -> impl Strategy<Value = (Role, Vec<u8>)> {
    let changes = list_of((any::<Index>(), any::<u8>()), 1..4);
    (role(), list_of(deed(), 1..4), changes).prop_map(|(role, deeds, changes)| {
        let mut bytes: Vec<u8> = deeds.iter().flat_map(|deed| deed.bytes(role)).collect();
        for (at, byte) in changes {
            let at = at.index(bytes.len().min(400));
            bytes[at] = byte;
        }
        (role, bytes)
    })
}

proptest! {
    #[test]
    fn what_a_peer_sends_is_what_is_received_however_it_is_split(
        role in role(),
        deeds in list_of(deed(), 0..5),
        cuts in list_of(any::<Index>(), 0..12),
    ) {
        let mut bytes: Vec<u8> = deeds.iter().flat_map(|deed| deed.bytes(role)).collect();
        bytes.extend(peer_frame(role, true, CLOSE, &close_body(1000, "")));
        let mut events: Vec<_> = deeds.iter().flat_map(Deed::events).collect();
        let mut output = pongs(role, &events);
        output.extend(own_frame(role, CLOSE, &close_body(1000, "")));
        events.push(Event::Close { code: Some(1000), reason: String::new() });
        let expected = Outcome { events, error: None, output, state: State::CloseReceived };

        prop_assert_eq!(&expected, &in_pieces(role, &bytes, &cuts));
        prop_assert_eq!(&expected, &at_once(role, &bytes));
    }

    #[test]
    fn byte_by_byte_equals_at_once_for_good_frames(
        role in role(),
        deeds in list_of(deed(), 0..3),
    ) {
        let bytes: Vec<u8> = deeds.iter().flat_map(|deed| deed.bytes(role)).collect();

        prop_assert_eq!(at_once(role, &bytes), byte_by_byte(role, &bytes));
    }

    #[test]
    fn any_split_gives_the_same_events_and_failure_for_hostile_bytes(
        (role, bytes) in role_and_hostile(),
        cuts in list_of(any::<Index>(), 0..6),
    ) {
        let expected = at_once(role, &bytes);

        prop_assert_eq!(&expected, &byte_by_byte(role, &bytes));
        prop_assert_eq!(&expected, &in_pieces(role, &bytes, &cuts));
    }

    #[test]
    fn any_split_gives_the_same_events_and_failure_for_corrupted_frames(
        (role, bytes) in corrupted(),
        cuts in list_of(any::<Index>(), 0..6),
    ) {
        let expected = at_once(role, &bytes);

        prop_assert_eq!(&expected, &byte_by_byte(role, &bytes));
        prop_assert_eq!(&expected, &in_pieces(role, &bytes, &cuts));
    }

    #[test]
    fn what_one_side_seals_the_other_receives(
        is_client: bool,
        messages in list_of(payload(), 0..5),
    ) {
        let (from, to) = if is_client {
            (Role::Client, Role::Server)
        } else {
            (Role::Server, Role::Client)
        };
        let (mut sender, mut wire, mut expected) = (connection(from), Vec::new(), Vec::new());
        for (is_text, payload) in messages {
            let kind = if is_text { MessageKind::Text } else { MessageKind::Binary };
            let mut out = Vec::new();
            let start = sender.begin(&mut out);
            out.extend_from_slice(&payload);
            let frame = sender.seal(start, kind, &mut out, &mut FixedMask).unwrap();
            wire.extend_from_slice(&out[frame]);
            expected.push(Event::Message { kind, payload: payload.into() });
        }

        prop_assert_eq!(expected, at_once(to, &wire).events);
    }

    #[test]
    fn message_limit_holds_for_any_fragmentation(
        role in role(),
        payload in list_of(any::<u8>(), 0..60),
        cuts in list_of(any::<Index>(), 0..5),
        limit in 0..60_usize,
    ) {
        let deed = Deed::Message { is_text: false, payload: payload.clone(), cuts, between: vec![] };
        let limits = Limits::default().with_max_message_bytes(limit);
        let outcome = feed(&mut Connection::new(role, limits), [&deed.bytes(role)[..]]);

        prop_assert_eq!(payload.len() <= limit, outcome.error.is_none());
        prop_assert_eq!(payload.len() <= limit, outcome.events == deed.events());
    }
}
