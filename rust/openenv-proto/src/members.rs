//! An observation's `data`, split into its members; and members joined into an object.
//!
//! ```text
//!   {"observation": {"x": 1}, "reward": 0.5, "done": false}
//!                   ~~~~~~~~            ~~~          ~~~~~
//!   splice:         {"x": 1,"reward":0.5,"done":false}
//! ```

use alloc::vec::Vec;

use crate::{error::EnvelopeError, scan::Reader};

/// The members of an observation answer's `data`, raw. Other members are passed over.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Observation<'a> {
    /// The environment's own fields.
    pub observation: Option<&'a [u8]>,
    /// Number, boolean or `null`.
    pub reward: Option<&'a [u8]>,
    /// Boolean.
    pub done: Option<&'a [u8]>,
    /// Object; sent only when not empty.
    pub metadata: Option<&'a [u8]>,
}

/// Splits `data`. The last of two equal keys wins.
///
/// # Errors
/// `data` is not a JSON object.
pub fn observation_members(data: &[u8]) -> Result<Observation<'_>, EnvelopeError> {
    let mut found = Observation::default();
    Reader::read_object(data, |reader, key| {
        found.take(key, reader.value(0)?);
        Ok(())
    })?;
    Ok(found)
}

impl<'a> Observation<'a> {
    pub(crate) fn take(&mut self, key: &str, value: &'a str) {
        let place = match key {
            "done" => &mut self.done,
            "metadata" => &mut self.metadata,
            "observation" => &mut self.observation,
            "reward" => &mut self.reward,
            _ => return,
        };
        *place = Some(value.as_bytes());
    }
}

/// Appends `object` to `out` with `members` added at its end, where they win over equal keys.
///
/// `object` and the values are well-formed JSON (slices of [`crate::split`]); only the braces of
/// `object` are looked at. Names are written as they are: they must need no escapes.
///
/// # Errors
/// `NotAnObject` when `object` has no braces; `out` is then unchanged.
pub fn splice(
    object: &[u8],
    members: &[(&str, &[u8])],
    out: &mut Vec<u8>,
) -> Result<(), EnvelopeError> {
    let inner = object
        .trim_ascii()
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_suffix(b"}"))
        .ok_or(EnvelopeError::NotAnObject)?
        .trim_ascii();
    out.push(b'{');
    out.extend_from_slice(inner);
    let mut first = inner.is_empty();
    for (name, value) in members {
        debug_assert!(!name.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\'));
        out.extend_from_slice(if first { b"\"" } else { b",\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value);
        first = false;
    }
    out.push(b'}');
    Ok(())
}
