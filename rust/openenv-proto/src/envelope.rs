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
use core::str;

use crate::{
    error::EnvelopeError,
    message::Op,
    reply::ReplyKind,
    scan::{decode_string, for_each_member},
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
    str::from_utf8(text)
        .map_err(|error| EnvelopeError::NotUtf8 { position: error.valid_up_to() })?;
    let mut found = Found::default();
    for_each_member(text, Key::from_name, |key, value| found.take(key, value))?;
    let kind = decode_string(found.kind.ok_or(EnvelopeError::TypeMissing)?)
        .ok_or(EnvelopeError::TypeNotString)?;
    Ok(Envelope { kind: Kind(kind), data: found.data, ext: found.ext, extra: found.extra })
}

#[derive(Clone, Copy)]
enum Key {
    Data,
    Ext,
    Other,
    Type,
}

impl Key {
    fn from_name(name: &str) -> Self {
        match name {
            "data" => Self::Data,
            "ext" => Self::Ext,
            "type" => Self::Type,
            _ => Self::Other,
        }
    }
}

#[derive(Default)]
struct Found<'a> {
    kind: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
    ext: Option<&'a [u8]>,
    extra: bool,
}

impl<'a> Found<'a> {
    fn take(&mut self, key: Key, value: &'a [u8]) {
        let place = match key {
            Key::Data => &mut self.data,
            Key::Ext => &mut self.ext,
            Key::Type => &mut self.kind,
            Key::Other => {
                self.extra = true;
                return;
            }
        };
        self.extra |= place.replace(value).is_some();
    }
}
