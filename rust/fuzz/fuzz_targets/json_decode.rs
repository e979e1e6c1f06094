//! Invariant: what `split` hands out, `jiter` reads to the value that `serde_json` reads: each member, string, integer and float, bit by bit, in order.
//!
//! Input: the text of a message.
#![no_main]

use jiter::JsonValue;
use libfuzzer_sys::fuzz_target;
use num_bigint::BigInt;
use openenv_fuzz::json::{Items, Members, is_readable};
use openenv_proto::split_reply;

/// Digits beyond which `jiter`, as Python, refuses an integer.
const MAX_DIGITS: usize = 4300;

fuzz_target!(|bytes: &[u8]| {
    if !is_readable(bytes) {
        return;
    }
    let Ok((envelope, members)) = split_reply(bytes) else { return };
    let slices = [
        envelope.data,
        envelope.ext,
        members.observation,
        members.reward,
        members.done,
        members.metadata,
    ];
    for slice in slices.into_iter().flatten() {
        match JsonValue::parse(slice, true) {
            Ok(value) => check(&value, str::from_utf8(slice).unwrap()),
            // The binding decides these again by Python's `json`.
            Err(error) => assert!(has_long_integer(slice), "refused: {error}"),
        }
    }
});

fn check(value: &JsonValue<'_>, text: &str) {
    match value {
        JsonValue::Null => assert_eq!("null", text),
        JsonValue::Bool(truth) => assert_eq!(truth.to_string(), text),
        JsonValue::Int(number) => assert_eq!(Ok(BigInt::from(*number)), text.parse()),
        JsonValue::BigInt(number) => {
            assert_eq!(Ok(number), text.parse().as_ref());
            assert!(i64::try_from(number).is_err(), "a small integer is told as one");
        }
        JsonValue::Float(number) => {
            assert!(text.contains(['.', 'e', 'E']), "{text} is an integer");
            assert_eq!(text.parse().map(f64::to_bits), Ok(number.to_bits()), "{text}");
        }
        JsonValue::Str(string) => {
            assert_eq!(serde_json::from_str::<String>(text).unwrap(), *string);
        }
        JsonValue::Array(items) => {
            let expected = Items::of(text).unwrap().0;
            assert_eq!(expected.len(), items.len());
            items.iter().zip(expected).for_each(|(item, text)| check(item, text));
        }
        JsonValue::Object(members) => {
            let expected = Members::of(text).unwrap().0;
            assert_eq!(expected.len(), members.len());
            for ((key, member), (expected_key, text)) in members.iter().zip(expected) {
                assert_eq!(expected_key, *key);
                check(member, text);
            }
        }
    }
}

fn has_long_integer(text: &[u8]) -> bool {
    text.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > MAX_DIGITS)
}
