//! JSON straight to and from Python objects.

mod decode;
mod encode;
mod path;
mod scalar;

pub(crate) use decode::{decode, has_marker, json_decode, restore};
pub(crate) use encode::{Encoder, Words, json_encode, json_encode_bytes};
pub(crate) use path::{Lossy, Segment};
