//! One validating pass over a JSON object's top level, without building values.

use alloc::borrow::Cow;
use core::str;

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};

use crate::error::EnvelopeError;

/// Containers that may nest inside one member's value.
///
/// Equal to `jiter`'s own bound and to the encoder's, so that what one side sends the other reads.
/// Python's `json` dies near 1,000 and `serde_json` stops at 128.
pub const MAX_DEPTH: usize = 200;

/// Calls `visit` with each member of the object `text`, in order, duplicates included.
///
/// `name` turns a decoded key into what the caller tells apart. A value is the exact slice of
/// `text`, without surrounding blanks, and well-formed.
///
/// # Errors
/// `NotJson` and `DepthExceeded` rule over `NotAnObject`: the whole text is read first.
pub(crate) fn for_each_member<'a, K>(
    text: &'a [u8],
    name: impl Fn(&str) -> K,
    mut visit: impl FnMut(K, &'a [u8]),
) -> Result<(), EnvelopeError> {
    let mut reader = Jiter::new(text);
    let peek = reader.peek().map_err(named)?;
    if peek != Peek::Object {
        reader.known_skip(peek).map_err(named)?;
        reader.finish().map_err(named)?;
        return Err(EnvelopeError::NotAnObject);
    }
    let mut key = reader.known_object().map_err(named)?.map(&name);
    while let Some(found) = key {
        let value = skip_value(&mut reader).map_err(named)?;
        visit(found, value);
        key = reader.next_key().map_err(named)?.map(&name);
    }
    reader.finish().map_err(named)
}

fn skip_value<'a>(reader: &mut Jiter<'a>) -> Result<&'a [u8], JiterError> {
    let peek = reader.peek()?;
    let start = reader.current_index();
    reader.known_skip(peek)?;
    Ok(reader.slice_to_current(start))
}

/// Decodes the well-formed JSON value `value`, if it is a string. Borrows unless it has escapes.
pub(crate) fn decode_string(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        let mut reader = Jiter::new(value);
        return reader.next_str().ok().map(|decoded| Cow::Owned(decoded.into()));
    }
    str::from_utf8(inner).ok().map(Cow::Borrowed)
}

#[expect(clippy::needless_pass_by_value, reason = "taken by `map_err`")]
fn named(error: JiterError) -> EnvelopeError {
    let position = error.index;
    match error.error_type {
        JiterErrorType::JsonError(JsonErrorType::RecursionLimitExceeded) => {
            EnvelopeError::DepthExceeded { position }
        }
        _ => EnvelopeError::NotJson { position },
    }
}
