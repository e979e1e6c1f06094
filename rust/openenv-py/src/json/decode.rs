//! JSON text to Python objects: `jiter` first, Python's `json` for what it refuses.
//!
//! Fast parsers refuse a little that `json` takes (nesting over 200, lone surrogates, `NaN`
//! tokens, very long integers) and word their errors in their own way. A refusal is therefore
//! decided again by `json`: same acceptance and same text as upstream, and only bad input pays.

use std::sync::LazyLock;

use jiter::{FloatMode, PartialMode, PythonParse, StringCacheMode};
use memchr::memmem::Finder;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

const PARSE: PythonParse = PythonParse {
    allow_inf_nan: true,
    cache_mode: StringCacheMode::Keys,
    partial_mode: PartialMode::Off,
    catch_duplicate_keys: false,
    float_mode: FloatMode::Float,
};

/// Decodes a whole text.
///
/// # Errors
/// `json.JSONDecodeError` (a `ValueError`) in Python's own words.
pub(crate) fn decode<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match PARSE.python_parse(py, text) {
        Ok(value) => Ok(value),
        Err(_) => loads(PyBytes::new(py, text).as_any()),
    }
}

/// Whether the text may hold a bytes marker (`{"__bytes__": "<base64>"}`); cheap and conservative.
pub(crate) fn has_marker(text: &[u8]) -> bool {
    static MARKER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"__bytes__\""));
    MARKER.find(text).is_some()
}

/// Turns the bytes markers inside decoded JSON back into `bytes`: `openenv._plain.restore`.
pub(crate) fn restore<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static RESTORE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RESTORE.import(value.py(), "openenv._plain", "restore")?.call1((value,))
}

/// The function of that name in `openenv._rust`.
#[pyfunction]
pub(crate) fn json_decode<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let parsed = if let Ok(bytes) = data.cast::<PyBytes>() {
        PARSE.python_parse(data.py(), bytes.as_bytes()).ok()
    } else if let Ok(text) = data.cast::<PyString>() {
        text.to_str().ok().and_then(|text| PARSE.python_parse(data.py(), text.as_bytes()).ok())
    } else {
        None
    };
    parsed.map_or_else(|| loads(data), Ok)
}

fn loads<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(data.py(), "json", "loads")?.call1((data,))
}
