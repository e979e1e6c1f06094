//! Members of an observation, and members joined into an object.

use openenv_proto::{EnvelopeError, observation_members, splice};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn joined(object: &str, members: &[(&str, &str)]) -> Result<String, EnvelopeError> {
    let raw: Vec<(&str, &[u8])> =
        members.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let mut out = b">".to_vec();
    splice(object.as_bytes(), &raw, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn the_four_members_are_found_wherever_they_stand() {
    let data =
        br#" {"done": true, "x": [1], "observation": {"done": 1}, "metadata":{}, "reward": null} "#;

    let found = observation_members(data).unwrap();

    assert_eq!(Some(br#"{"done": 1}"#.as_slice()), found.observation);
    assert_eq!(Some(b"null".as_slice()), found.reward);
    assert_eq!(Some(b"true".as_slice()), found.done);
    assert_eq!(Some(b"{}".as_slice()), found.metadata);
}

#[test]
fn missing_members_are_none_and_the_last_duplicate_wins() {
    assert_eq!(None, observation_members(b"{}").unwrap().observation);
    let found = observation_members(br#"{"reward":1,"r\u0065ward":2}"#).unwrap();

    assert_eq!(Some(b"2".as_slice()), found.reward);
}

#[test]
fn data_that_is_no_object_is_refused() {
    assert_eq!(Err(EnvelopeError::NotAnObject), observation_members(b"[1]"));
    assert_eq!(Err(EnvelopeError::NotJson { position: 1 }), observation_members(b"{"));
}

#[test]
fn members_are_appended_to_empty_blank_and_full_objects() {
    let two = [("reward", "0.5"), ("done", "false")];
    for (object, members, expected) in [
        ("{}", &two[..0], ">{}"),
        (" { } ", &two[..0], ">{}"),
        ("{}", &two[..1], r#">{"reward":0.5}"#),
        (" {\n} ", &two[..], r#">{"reward":0.5,"done":false}"#),
        (r#"{"x": {} }"#, &two[..], r#">{"x": {},"reward":0.5,"done":false}"#),
        (r#"{"x":1}"#, &two[..0], r#">{"x":1}"#),
    ] {
        assert_eq!(Ok(expected.to_owned()), joined(object, members), "{object}");
    }
}

#[test]
fn what_is_no_object_leaves_the_output_as_it_was() {
    for object in ["", "{", "}", "[]", "null", "5"] {
        let mut out = b">".to_vec();

        assert_eq!(Err(EnvelopeError::NotAnObject), splice(object.as_bytes(), &[], &mut out));
        assert_eq!(b">".as_slice(), out);
    }
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![any::<i64>().prop_map(Value::from), ".{0,4}".prop_map(Value::from)];
    prop::collection::btree_map("(reward|done|.{0,3})", value, 0..4)
        .prop_map(|members| members.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn appended_members_win_like_an_update(mut object in object(), pretty: bool) {
        let encode = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
        let text = encode(&object).map_err(|error| TestCaseError::fail(error.to_string()))?;

        let out = joined(&text, &[("reward", "1"), ("done", "[]")])
            .map_err(|error| TestCaseError::fail(error.to_string()))?;

        object.insert("reward".to_owned(), json!(1));
        object.insert("done".to_owned(), json!([]));
        let decoded: Value = serde_json::from_str(&out[1..])
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(Value::Object(object), decoded);
    }

    #[test]
    fn members_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..48)) {
        let _ = observation_members(&bytes);
        let _ = splice(&bytes, &[("done", b"true")], &mut Vec::new());
    }
}
