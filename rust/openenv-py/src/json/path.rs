//! Paths into a value, and the errors that carry them.

use core::fmt;

use pyo3::prelude::*;

use crate::errors::EncodeError;

/// A longer path is cut: what went wrong is seen from its beginning.
const MAX_PATH_CHARS: usize = 200;

/// One step of a path into the value: `.key` or `[3]`.
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    Index(usize),
    Key(String),
}

/// A float that JSON cannot say, and where it stood.
#[derive(Debug)]
pub(crate) struct Lossy {
    pub(crate) path: Vec<Segment>,
    pub(crate) value: f64,
}

impl fmt::Display for Segment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(out, "[{index}]"),
            Self::Key(key) => write!(out, ".{key}"),
        }
    }
}

/// Why a value could not be encoded.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No JSON form, nesting too deep, …: becomes `EncodeError` with the path.
    Refused { path: Vec<Segment>, what: String },
    /// Foreign code raised.
    Raised(PyErr),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

pub(super) fn refused(what: String) -> Failure {
    Failure::Refused { path: Vec::new(), what }
}

pub(super) fn within(failure: Failure, segment: impl FnOnce() -> Segment) -> Failure {
    match failure {
        Failure::Refused { mut path, what } => {
            path.push(segment());
            Failure::Refused { path, what }
        }
        raised @ Failure::Raised(_) => raised,
    }
}

/// The path was collected innermost first.
pub(super) fn raise(failure: Failure, root: &str) -> PyErr {
    match failure {
        Failure::Raised(error) => error,
        Failure::Refused { path, what } => {
            let mut path: String = path.iter().rev().map(ToString::to_string).collect();
            if let Some((long, _)) = path.char_indices().nth(MAX_PATH_CHARS) {
                path.replace_range(long.., "…"); // a value that holds itself has no end
            }
            let text = format!("{root}{path}");
            let text = text.strip_prefix('.').unwrap_or(&text).to_owned();
            EncodeError::new_err((text, what))
        }
    }
}
