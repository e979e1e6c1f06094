//! JSON straight to and from Python objects.

mod decode;
mod encode;
mod scalar;

pub(crate) use decode::{decode, has_marker, json_decode, restore};
pub(crate) use encode::{Encoder, Lossy, Segment, json_encode};
