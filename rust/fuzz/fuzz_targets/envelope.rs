//! Invariant: `split`, `split_reply`, `observation_members`, `classify` and `splice` take exactly the texts that `serde_json` takes (to the depth limit), in slices of the text itself.
//!
//! Input: the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openenv_fuzz::json::{Members, depth, is_json, is_readable};
use openenv_proto::{
    Envelope, EnvelopeError, Incoming, MAX_DEPTH, Observation, Op, classify, observation_members,
    splice, split, split_reply,
};

const NAMES: [&str; 3] = ["data", "ext", "type"];

fuzz_target!(|bytes: &[u8]| {
    if !is_readable(bytes) {
        return;
    }
    let seen = split(bytes);
    assert_eq!(seen, split_reply(bytes).map(|(envelope, _)| envelope));
    let Ok(text) = str::from_utf8(bytes) else {
        return assert!(matches!(seen, Err(EnvelopeError::NotUtf8 { .. })));
    };
    match (expected(text), &seen) {
        (Ok(members), Ok(envelope)) => {
            check_slices(&members, envelope);
            check_class(text, &members, envelope);
            check_members(text, envelope);
        }
        (Err(cause), Err(error)) => assert!(cause.is(error, text), "{cause:?}, seen {error:?}"),
        (expected, seen) => panic!("{expected:?}, seen {seen:?}"),
    }
});

/// Why the oracle refuses a text.
#[derive(Debug)]
enum Cause {
    NotJson,
    TooDeep,
    NotAnObject,
    TypeMissing,
    TypeNotString,
}

impl Cause {
    fn is(&self, error: &EnvelopeError, text: &str) -> bool {
        match (self, *error) {
            // Of a text that is both, whichever comes first is told.
            (Self::NotJson, EnvelopeError::DepthExceeded { position }) => {
                text[..=position].bytes().filter(|byte| b"[{".contains(byte)).count() > MAX_DEPTH
            }
            (Self::NotJson, EnvelopeError::NotJson { position }) => position <= text.len(),
            (Self::TooDeep, EnvelopeError::DepthExceeded { .. })
            | (Self::NotAnObject, EnvelopeError::NotAnObject)
            | (Self::TypeMissing, EnvelopeError::TypeMissing)
            | (Self::TypeNotString, EnvelopeError::TypeNotString) => true,
            _ => false,
        }
    }
}

fn expected(text: &str) -> Result<Members<'_>, Cause> {
    if !is_json(text) {
        return Err(Cause::NotJson);
    }
    let members = Members::of(text);
    // An object's own brackets do not count: the limit is for each member's value.
    if depth(text) > MAX_DEPTH + usize::from(members.is_some()) {
        return Err(Cause::TooDeep);
    }
    let members = members.ok_or(Cause::NotAnObject)?;
    match members.last("type") {
        None => Err(Cause::TypeMissing),
        Some(kind) if !kind.starts_with('"') => Err(Cause::TypeNotString),
        Some(_) => Ok(members),
    }
}

fn check_slices(members: &Members<'_>, envelope: &Envelope<'_>) {
    let kind: String = serde_json::from_str(members.last("type").unwrap()).unwrap();
    assert_eq!(kind, envelope.kind.as_str());
    assert_same_place(members.last("data"), envelope.data);
    assert_same_place(members.last("ext"), envelope.ext);
    let is_extra = members.0.iter().any(|(key, _)| !NAMES.contains(&key.as_str()))
        || NAMES.iter().any(|name| members.count(name) > 1);
    assert_eq!(is_extra, envelope.extra);
}

fn check_class(text: &str, members: &Members<'_>, envelope: &Envelope<'_>) {
    let is_regular = !envelope.extra
        && members.count("ext") == 0
        && match (envelope.kind.as_str(), members.last("data")) {
            ("step" | "mcp", Some(data)) => data.starts_with('{'),
            ("reset", data) => data.is_none_or(|data| data.starts_with('{')),
            ("state" | "close", data) => data.is_none(),
            _ => false,
        };
    match classify(text.as_bytes()) {
        Incoming::Regular { op, data } => {
            assert!(is_regular);
            assert_eq!(Op::from_name(envelope.kind.as_str()), Some(op));
            assert_eq!(envelope.data, data);
        }
        Incoming::Irregular => assert!(!is_regular),
    }
}

fn check_members(text: &str, envelope: &Envelope<'_>) {
    let (_, seen) = split_reply(text.as_bytes()).unwrap();
    let Some(data) = envelope.data.filter(|data| data.starts_with(b"{")) else {
        return assert_eq!(Observation::default(), seen);
    };
    assert_eq!(Ok(seen), observation_members(data));
    let expected = Members::of(str::from_utf8(data).unwrap()).unwrap();
    assert_same_place(expected.last("observation"), seen.observation);
    assert_same_place(expected.last("reward"), seen.reward);
    assert_same_place(expected.last("done"), seen.done);
    assert_same_place(expected.last("metadata"), seen.metadata);
    check_splice(data, &expected, &seen);
}

/// The members added to the object itself give the object with the members set.
fn check_splice(data: &[u8], members: &Members<'_>, seen: &Observation<'_>) {
    let added: Vec<(&str, &[u8])> = seen
        .observation
        .map(|value| ("reward", value))
        .into_iter()
        .chain([("new", data)])
        .collect();
    let mut out = b"before".to_vec();
    splice(data, &added, &mut out).unwrap();
    let whole = str::from_utf8(out.strip_prefix(b"before").unwrap()).unwrap();
    let spliced = Members::of(whole).unwrap();
    let mut expected: Vec<_> =
        members.0.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    expected.extend(added.iter().map(|(key, value)| (*key, str::from_utf8(value).unwrap())));
    let spliced: Vec<_> = spliced.0.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    assert_eq!(expected, spliced);
}

fn assert_same_place(expected: Option<&str>, seen: Option<&[u8]>) {
    let place = |text: &[u8]| (text.as_ptr(), text.len());
    assert_eq!(expected.map(str::as_bytes).map(place), seen.map(place), "{expected:?} {seen:?}");
}
