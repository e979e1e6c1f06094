//! Splits `{"type":…,"data":…}` into slices of itself.
//!
//! The scan reads the whole text once as RFC 8259 JSON and builds nothing; `data` is later decoded
//! straight from its slice. Rules, those of Python's `json.loads`: keys in any order, blanks
//! anywhere, escapes in keys and in the type, and of a key that comes twice the last one wins.
//!
//! ```text
//!   {"type": "step", "data": {"action": 1}, "ext": {}}
//!             ~~~~           ~~~~~~~~~~~~~         ~~
//!             kind           data                  ext
//! ```

use alloc::borrow::Cow;

use crate::{
    error::EnvelopeError,
    members::Observation,
    message::Op,
    reply::ReplyKind,
    scan::{Reader, decode_string},
};

/// A message, split. Slices borrow from the text.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// The `type`, decoded.
    pub kind: Kind<'a>,
    /// Raw JSON of `data`: any value, `null` included.
    pub data: Option<&'a [u8]>,
    /// Raw JSON of `ext`.
    pub ext: Option<&'a [u8]>,
    /// There is another top-level key, or one of the three came twice.
    pub extra: bool,
}

/// A decoded `type`. Known names are told by [`Kind::op`] and [`Kind::reply`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kind<'a>(Cow<'a, str>);

impl Kind<'_> {
    /// The name as it was sent, unescaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The request of this name.
    pub fn op(&self) -> Option<Op> {
        Op::from_name(&self.0)
    }

    /// The reply of this name.
    pub fn reply(&self) -> Option<ReplyKind> {
        ReplyKind::from_name(&self.0)
    }
}

/// Splits one message.
///
/// # Errors
/// The text is not UTF-8, not JSON, too deep, not an object, or has no string `type`; the first of
/// these in this order.
pub fn split(text: &[u8]) -> Result<Envelope<'_>, EnvelopeError> {
    let mut found = Found::default();
    Reader::read_object(text, |reader, key| {
        found.take(key, reader.value(0)?);
        Ok(())
    })?;
    found.envelope()
}

/// Splits one message and, in the same pass, the members of its `data` as
/// [`crate::observation_members`] does. They mean something only if the kind says so; without
/// a `data` object there are none.
///
/// # Errors
/// As [`split`].
pub fn split_reply(text: &[u8]) -> Result<(Envelope<'_>, Observation<'_>), EnvelopeError> {
    let mut found = Found::default();
    let mut members = Observation::default();
    Reader::read_object(text, |reader, key| {
        if key == "data" {
            members = Observation::default();
        }
        let value = match key {
            "data" if reader.is_object() => reader.object(|reader, key| {
                members.take(key, reader.value(1)?);
                Ok(())
            })?,
            _ => reader.value(0)?,
        };
        found.take(key, value);
        Ok(())
    })?;
    Ok((found.envelope()?, members))
}

#[derive(Default)]
struct Found<'a> {
    kind: Option<&'a str>,
    data: Option<&'a str>,
    ext: Option<&'a str>,
    extra: bool,
}

impl<'a> Found<'a> {
    fn take(&mut self, key: &str, value: &'a str) {
        let place = match key {
            "data" => &mut self.data,
            "ext" => &mut self.ext,
            "type" => &mut self.kind,
            _ => {
                self.extra = true;
                return;
            }
        };
        self.extra |= place.replace(value).is_some();
    }

    fn envelope(self) -> Result<Envelope<'a>, EnvelopeError> {
        let kind = self.kind.ok_or(EnvelopeError::TypeMissing)?;
        let kind = decode_string(kind).ok_or(EnvelopeError::TypeNotString)?;
        Ok(Envelope {
            kind: Kind(kind),
            data: self.data.map(str::as_bytes),
            ext: self.ext.map(str::as_bytes),
            extra: self.extra,
        })
    }
}
