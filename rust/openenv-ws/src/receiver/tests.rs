//! Memory of the receiver: it follows what has arrived, never what was declared.

use alloc::{vec, vec::Vec};

use super::*;

const LIMIT: usize = 1 << 20;

impl Receiver {
    fn held_bytes(&self) -> usize {
        let assembled = self.assembly.as_ref().map_or(0, |assembly| assembly.payload.capacity());
        match &self.phase {
            Phase::Control { payload, .. } => assembled + payload.capacity(),
            Phase::Header(_) | Phase::Data { .. } => assembled,
        }
    }
}

fn header(is_final: bool, opcode: Opcode, payload_bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHeader { is_final, opcode, key: None, payload_bytes }.append(&mut out);
    out
}

#[test]
fn declared_length_claims_a_small_reserve_only() {
    let mut receiver = Receiver::new(Role::Client, LIMIT);
    let mut bytes = header(true, Opcode::Binary, LIMIT as u64);
    bytes.push(0);

    assert_eq!(Ok(None), receiver.next(&mut &bytes[..]));
    assert_eq!(FIRST_RESERVE_BYTES, receiver.held_bytes());
}

#[test]
fn too_large_a_message_fails_at_its_header_before_any_room_is_made() {
    let mut receiver = Receiver::new(Role::Client, LIMIT);
    let bytes = header(true, Opcode::Binary, LIMIT as u64 + 1);

    assert_eq!(Err(Error::MessageTooBig { limit: LIMIT }), receiver.next(&mut &bytes[..]));
    assert_eq!(0, receiver.held_bytes());
}

#[test]
fn limit_counts_all_fragments_of_a_message() {
    let mut receiver = Receiver::new(Role::Client, 10);
    let mut bytes = header(false, Opcode::Binary, 6);
    bytes.extend([0; 6]);
    bytes.extend(header(true, Opcode::Continuation, 5));

    assert_eq!(Err(Error::MessageTooBig { limit: 10 }), receiver.next(&mut &bytes[..]));
}

#[test]
fn message_of_exactly_the_limit_is_taken_in_any_form() {
    let mut whole = header(true, Opcode::Binary, 10);
    whole.extend([7; 10]);
    let mut fragments = header(false, Opcode::Binary, 4);
    fragments.extend([7; 4]);
    fragments.extend(header(true, Opcode::Continuation, 6));
    fragments.extend([7; 6]);
    for bytes in [whole, fragments] {
        let mut receiver = Receiver::new(Role::Client, 10);
        let event = receiver.next(&mut &bytes[..]);
        let payload = Cow::Owned(vec![7; 10]);

        assert_eq!(Ok(Some(Event::Message { kind: MessageKind::Binary, payload })), event);
    }
}

#[test]
fn reassembly_never_holds_more_than_the_limit_however_it_is_cut() {
    for piece_bytes in [1_usize, 100, 4096, 65536, LIMIT / 2] {
        let mut receiver = Receiver::new(Role::Client, LIMIT);
        let mut opcode = Opcode::Binary;
        let mut left = LIMIT;
        while left > 0 {
            let size = piece_bytes.min(left);
            let mut bytes = header(false, opcode, size as u64);
            bytes.resize(bytes.len() + size, 1);
            opcode = Opcode::Continuation;
            left -= size;

            assert_eq!(Ok(None), receiver.next(&mut &bytes[..]));
            assert!(receiver.held_bytes() <= LIMIT, "{}", receiver.held_bytes());
        }
    }
}

#[test]
fn single_frame_in_pieces_ends_in_exactly_its_own_bytes() {
    let mut receiver = Receiver::new(Role::Client, LIMIT);
    let mut bytes = header(true, Opcode::Binary, 300_000);
    bytes.resize(bytes.len() + 300_000, 5);
    let mut event = None;
    for piece in bytes.chunks(1000) {
        event = receiver.next(&mut &piece[..]).unwrap();
    }
    let Some(Event::Message { payload: Cow::Owned(payload), .. }) = event else { panic!() };

    assert_eq!((300_000, 300_000), (payload.len(), payload.capacity()));
}

#[test]
fn whole_message_of_a_server_is_borrowed_by_a_client() {
    let mut receiver = Receiver::new(Role::Client, LIMIT);
    let bytes = b"\x81\x02hi\x81\x01!";
    let mut input = &bytes[..];
    let Ok(Some(Event::Message { payload: Cow::Borrowed(payload), .. })) =
        receiver.next(&mut input)
    else {
        panic!()
    };

    assert_eq!(bytes[2..4].as_ptr(), payload.as_ptr());
    assert_eq!(b"\x81\x01!", input);
}
