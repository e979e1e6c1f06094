//! `serde_json` as the plain reading of a text: it builds everything, in order, with duplicates.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// Brackets beyond which the oracle's recursion is not tried.
const MAX_BRACKETS: usize = 1000;

/// An object's members in order, duplicates included, with the exact text of each value.
#[derive(Debug)]
pub struct Members<'a>(pub Vec<(String, &'a str)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((key, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl<'a> Members<'a> {
    /// The members of `text`; `None` if it is no object.
    pub fn of(text: &'a str) -> Option<Self> {
        from_text(text)
    }

    /// The text of the last value of this name.
    pub fn last(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// How often this name is there.
    pub fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|(key, _)| key == name).count()
    }
}

/// An array's items in order, as their exact texts.
#[derive(Debug)]
pub struct Items<'a>(pub Vec<&'a str>);

impl<'a> Items<'a> {
    /// The items of `text`; `None` if it is no array.
    pub fn of(text: &'a str) -> Option<Self> {
        let items: Vec<&RawValue> = from_text(text)?;
        Some(Self(items.into_iter().map(RawValue::get).collect()))
    }
}

/// Whether the oracle reads this text as everybody does: `serde_json` gives private names a
/// meaning of its own, and overflows the stack on deep nesting.
pub fn is_readable(text: &[u8]) -> bool {
    let brackets = text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    let is_private = |window: &[u8]| window == b"serde_json::private";
    brackets <= MAX_BRACKETS && !text.windows(19).any(is_private)
}

/// Whether a text is JSON, every string and number of it.
pub fn is_json(text: &str) -> bool {
    from_text::<Value>(text).is_some()
}

/// Containers that nest in the text of a value, duplicates included; the text is JSON.
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut is_in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b'[' | b'{' if !is_in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !is_in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

fn from_text<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer).ok()?;
    deserializer.end().ok().map(|()| value)
}
