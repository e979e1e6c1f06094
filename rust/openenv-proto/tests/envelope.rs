//! `split` against a table of shapes, and against `serde_json` on generated and damaged text.

use openenv_proto::{
    Envelope, EnvelopeError, MAX_DEPTH, Observation, Op, ReplyKind, observation_members, split,
    split_reply,
};
use proptest::prelude::*;
use serde_json::Value;

fn slices(text: &str) -> (String, Option<&str>, Option<&str>, bool) {
    let Envelope { kind, data, ext, extra, .. } =
        split(text.as_bytes()).unwrap_or_else(|error| unreachable!("{text}: {error}"));
    (kind.as_str().to_owned(), as_text(data), as_text(ext), extra)
}

fn as_text(slice: Option<&[u8]>) -> Option<&str> {
    slice.map(|bytes| core::str::from_utf8(bytes).unwrap_or("not UTF-8"))
}

type Split<'a> = (&'a str, Option<&'a str>, Option<&'a str>, bool);

#[test]
fn every_regular_shape_is_split_into_slices_of_itself() {
    let table: &[(&str, Split<'_>)] = &[
        (r#"{"type":"state"}"#, ("state", None, None, false)),
        (r#"{"type":"step","data":{"a":1}}"#, ("step", Some(r#"{"a":1}"#), None, false)),
        (r#"{"data":{"a":1},"type":"step"}"#, ("step", Some(r#"{"a":1}"#), None, false)),
        (
            "\t{ \"type\" : \"step\" , \"data\" :\r\n [ 1 , 2 ] }\n",
            ("step", Some("[ 1 , 2 ]"), None, false),
        ),
        (
            r#"{"type":"error","data":{},"ext":{"x":[]}}"#,
            ("error", Some("{}"), Some(r#"{"x":[]}"#), false),
        ),
        (r#"{"type":"reset","data":null}"#, ("reset", Some("null"), None, false)),
        (r#"{"type":"x","data":-1.5e+3}"#, ("x", Some("-1.5e+3"), None, false)),
        (r#"{"type":""}"#, ("", None, None, false)),
        (
            r#"{"type":"état","data":"\u00e9\ud83d\ude00😀"}"#,
            ("état", Some(r#""\u00e9\ud83d\ude00😀""#), None, false),
        ),
    ];
    for (text, expected) in table {
        let (kind, data, ext, extra) = slices(text);

        assert_eq!(*expected, (kind.as_str(), data, ext, extra), "{text}");
    }
}

#[test]
fn escapes_in_keys_and_in_the_type_are_decoded() {
    let table: &[(&str, Split<'_>)] = &[
        (r#"{"type":"st\u0065p"}"#, ("step", None, None, false)),
        (r#"{"typ\u0065":"step","d\u0061ta":{}}"#, ("step", Some("{}"), None, false)),
        (r#"{"type":"a\"b\\c\/\b\f\n\r\t"}"#, ("a\"b\\c/\u{8}\u{c}\n\r\t", None, None, false)),
        (r#"{"type":"\ud83d\ude00"}"#, ("😀", None, None, false)),
    ];
    for (text, expected) in table {
        let (kind, data, ext, extra) = slices(text);

        assert_eq!(*expected, (kind.as_str(), data, ext, extra), "{text}");
    }
}

#[test]
fn other_keys_and_duplicates_are_told_and_the_last_duplicate_wins() {
    let table: &[(&str, Split<'_>)] = &[
        (r#"{"type":"state","id":7}"#, ("state", None, None, true)),
        (r#"{"type":"step","type":"state"}"#, ("state", None, None, true)),
        (r#"{"type":1,"type":"state"}"#, ("state", None, None, true)),
        (r#"{"data":1,"type":"step","data":2}"#, ("step", Some("2"), None, true)),
        (r#"{"type":"step","ext":1,"ext":2}"#, ("step", None, Some("2"), true)),
        (r#"{"type":"step","data":1,"dat\u0061":2}"#, ("step", Some("2"), None, true)),
    ];
    for (text, expected) in table {
        let (kind, data, ext, extra) = slices(text);

        assert_eq!(*expected, (kind.as_str(), data, ext, extra), "{text}");
    }
}

#[test]
fn known_types_are_told_as_requests_and_replies() {
    for (name, op, reply) in [
        ("close", Some(Op::Close), None),
        ("error", None, Some(ReplyKind::Error)),
        ("mcp", Some(Op::Mcp), Some(ReplyKind::Mcp)),
        ("observation", None, Some(ReplyKind::Observation)),
        ("reset", Some(Op::Reset), None),
        ("state", Some(Op::State), Some(ReplyKind::State)),
        ("step", Some(Op::Step), None),
        ("Step", None, None),
        ("", None, None),
    ] {
        let text = format!(r#"{{"type":"{name}"}}"#);
        let envelope = split(text.as_bytes()).unwrap();

        assert_eq!((op, reply), (envelope.kind.op(), envelope.kind.reply()), "{name}");
    }
}

#[test]
fn what_is_no_envelope_is_refused_by_its_cause() {
    use EnvelopeError::{NotAnObject, NotJson, NotUtf8, TypeMissing, TypeNotString};
    let table: &[(&[u8], EnvelopeError)] = &[
        (b"", NotJson { position: 0 }),
        (b"  ", NotJson { position: 2 }),
        (b"5", NotAnObject),
        (b"[1,2]", NotAnObject),
        (b"\"reset\"", NotAnObject),
        (b"null", NotAnObject),
        (b"[1,2", NotJson { position: 4 }),
        (b"5 5", NotJson { position: 2 }),
        (b"{}", TypeMissing),
        (br#"{"data":{}}"#, TypeMissing),
        (br#"{"type":null}"#, TypeNotString),
        (br#"{"type":["step"]}"#, TypeNotString),
        (br#"{"type":"step","type":1}"#, TypeNotString),
        (br#"{"type":"step"} x"#, NotJson { position: 16 }),
        (br#"{"type":"step",}"#, NotJson { position: 15 }),
        (br#"{"type":"step" "data":1}"#, NotJson { position: 15 }),
        (br#"{"type":"step","data":NaN}"#, NotJson { position: 22 }),
        (br#"{"type":"step","data":01}"#, NotJson { position: 23 }),
        (b"{\"type\":\"a\nb\"}", NotJson { position: 10 }),
        (br#"{"type":"\ud800"}"#, NotJson { position: 9 }),
        (b"{\"type\":\"step\",\"data\":\"\xff\"}", NotUtf8 { position: 23 }),
        (b"\xef\xbb\xbf{\"type\":\"step\"}", NotJson { position: 0 }),
    ];
    for (text, expected) in table {
        assert_eq!(Err(*expected), split(text), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn depth_is_refused_by_name_and_not_by_a_full_stack() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!(r#"{{"type":"step","data":{}1{}}}"#, open.repeat(depth), close.repeat(depth))
    };
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        assert!(split(nested(open, close, MAX_DEPTH).as_bytes()).is_ok());
        for depth in [MAX_DEPTH + 1, 300, 100_000] {
            let refused = split(nested(open, close, depth).as_bytes()).map(drop);

            assert!(matches!(refused, Err(EnvelopeError::DepthExceeded { .. })), "{refused:?}");
        }
    }
}

#[test]
fn empty_containers_count_and_both_splits_count_alike() {
    for (open, core, close) in [("[", "[]", "]"), (r#"{"a":"#, "{}", "}")] {
        for (depth, is_ok) in [(MAX_DEPTH - 1, true), (MAX_DEPTH, false)] {
            let value = open.repeat(depth) + core + &close.repeat(depth);
            let text = format!(r#"{{"type":"observation","data":{value}}}"#);

            assert_eq!(is_ok, split(text.as_bytes()).is_ok());
            assert_eq!(is_ok, split_reply(text.as_bytes()).is_ok());
        }
    }
}

#[test]
fn a_reply_is_split_down_to_its_members_in_one_pass() {
    let text = br#"{"data":[],"type":"observation","data":{"done":true,"observation":{"x":{}}}}"#;

    let (envelope, members) = split_reply(text).unwrap();

    assert_eq!(Some(ReplyKind::Observation), envelope.kind.reply());
    assert_eq!(Some(br#"{"done":true,"observation":{"x":{}}}"#.as_slice()), envelope.data);
    assert_eq!(Some(b"true".as_slice()), members.done);
    assert_eq!(Some(br#"{"x":{}}"#.as_slice()), members.observation);
    assert_eq!((None, None), (members.reward, members.metadata));
}

#[test]
fn members_of_a_data_that_lost_to_a_later_one_are_forgotten() {
    for last in ["{}", "null", "[1]"] {
        let text = format!(r#"{{"type":"state","data":{{"done":true}},"data":{last}}}"#);

        assert_eq!(Observation::default(), split_reply(text.as_bytes()).unwrap().1, "{last}");
    }
}

#[test]
fn errors_say_what_and_where() {
    let sentence = |text: &[u8]| split(text).unwrap_err().to_string();

    assert_eq!("message is not JSON at byte 1", sentence(b"{"));
    assert_eq!("message is not UTF-8 at byte 1", sentence(b"\"\xff\""));
    assert_eq!("message is not a JSON object", sentence(b"[]"));
    assert_eq!("message has no `type`", sentence(b"{}"));
    assert_eq!("message has a `type` that is not a string", sentence(br#"{"type":1}"#));
    let deep = "[".repeat(201) + "1";

    assert_eq!("JSON nests deeper than 200 at byte 200", sentence(deep.as_bytes()));
}

/// JSON text with blanks, escapes, duplicates and long numbers.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?",
        string_text(),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..4), blank()).prop_map(
                |(items, blank)| format!("[{blank}{}{blank}]", items.join(&format!("{blank},")))
            ),
            (prop::collection::vec((string_text(), inner), 0..4), blank())
                .prop_map(|(members, blank)| object_text(&members, &blank)),
        ]
    })
}

fn string_text() -> impl Strategy<Value = String> {
    "\"([ -!#-\\[\\]-~é😀]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9a-f]{2}|\\\\ud83d\\\\ude0[0-9]){0,6}\""
}

fn blank() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,2}"
}

fn object_text(members: &[(String, String)], blank: &str) -> String {
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("{key}{blank}:{blank}{value}")).collect();
    format!("{{{blank}{}{blank}}}", members.join(&format!("{blank},{blank}")))
}

fn member() -> impl Strategy<Value = (String, String)> {
    let key = prop_oneof![
        3 => Just(r#""type""#.to_owned()),
        1 => Just(r#""t\u0079pe""#.to_owned()),
        3 => Just(r#""data""#.to_owned()),
        1 => Just(r#""ext""#.to_owned()),
        1 => string_text(),
    ];
    let value = prop_oneof![2 => string_text(), 3 => json_text()];
    (key, value)
}

fn envelope_text() -> impl Strategy<Value = String> {
    (prop::collection::vec(member(), 0..5), blank())
        .prop_map(|(members, blank)| format!("{blank}{}{blank}", object_text(&members, &blank)))
}

/// The same text with one byte replaced, removed or doubled.
fn damage(text: &str, at: prop::sample::Index, with: Option<u8>) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.is_empty() {
        return bytes;
    }
    let at = at.index(bytes.len());
    match with {
        Some(byte) => bytes.splice(at..=at, [byte]).for_each(drop),
        None => drop(bytes.remove(at)),
    }
    bytes
}

fn agree(text: &[u8]) -> Result<(), TestCaseError> {
    let ours = split(text);
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        let refused =
            matches!(ours, Err(EnvelopeError::NotJson { .. } | EnvelopeError::NotUtf8 { .. }));
        prop_assert!(refused, "serde_json refuses, split gives {ours:?}");
        return Ok(());
    };
    match (value.as_object(), value.get("type")) {
        (None, _) => prop_assert_eq!(Err(EnvelopeError::NotAnObject), ours),
        (Some(_), None) => prop_assert_eq!(Err(EnvelopeError::TypeMissing), ours),
        (Some(_), Some(Value::String(kind))) => {
            let ours = ours.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(kind, ours.kind.as_str());
            let decoded = |slice: Option<&[u8]>| slice.map(serde_json::from_slice::<Value>);
            for (name, slice) in [("data", ours.data), ("ext", ours.ext)] {
                prop_assert_eq!(
                    value.get(name).cloned(),
                    decoded(slice).transpose().ok().flatten()
                );
            }
        }
        (Some(_), Some(_)) => prop_assert_eq!(Err(EnvelopeError::TypeNotString), ours),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn split_and_serde_json_agree_on_envelopes(text in envelope_text()) {
        agree(text.as_bytes())?;
    }

    #[test]
    fn one_pass_gives_what_two_passes_give(
        members in prop::collection::vec(
            ("\"(done|reward|r\\\\u0065ward|metadata|observation|x)\"", json_text()), 0..5),
        around in prop::collection::vec(member(), 0..2),
        at in any::<prop::sample::Index>(),
        with in prop::option::of(prop::sample::select(br#"{}[]",: "#.as_slice())),
        is_damaged: bool,
    ) {
        let mut all = vec![
            (r#""type""#.to_owned(), r#""observation""#.to_owned()),
            (r#""data""#.to_owned(), object_text(&members, " ")),
        ];
        all.extend(around);
        let text = object_text(&all, "");
        let text = if is_damaged { damage(&text, at, with) } else { text.into_bytes() };

        let expected = split(&text).map(|envelope| {
            let members = envelope.data.map(observation_members).and_then(Result::ok);
            (envelope, members.unwrap_or_default())
        });
        prop_assert_eq!(expected, split_reply(&text));
    }

    #[test]
    fn split_and_serde_json_agree_on_any_json(text in json_text()) {
        agree(text.as_bytes())?;
    }

    #[test]
    fn split_and_serde_json_agree_on_damaged_text(
        text in envelope_text(),
        at in any::<prop::sample::Index>(),
        with in prop::option::of(prop_oneof![
            prop::sample::select(br#"{}[]",:\0-.eE+ntfu "#.as_slice()),
            any::<u8>(),
        ]),
    ) {
        agree(&damage(&text, at, with))?;
    }

    #[test]
    fn a_prefix_of_an_envelope_is_no_envelope(
        text in envelope_text(),
        at in any::<prop::sample::Index>(),
    ) {
        let text = text.trim_end().as_bytes();
        agree(&text[..at.index(text.len())])?;
    }

    #[test]
    fn split_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = split(&bytes);
    }

    #[test]
    fn split_never_panics_on_the_alphabet_of_json(
        bytes in prop::collection::vec(
            prop::sample::select(br#"{}[]",:\u0019-.eE+ntfdasype "#.as_slice()), 0..48),
    ) {
        let _ = split(&bytes);
    }
}
