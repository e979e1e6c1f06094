//! A server's incoming message, told apart without parsing it twice.

use openenv_proto::{Incoming, Op, classify};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::json::has_marker;

/// One regular request: what is asked, and the raw JSON of its `data`.
#[pyclass(frozen, module = "openenv._rust")]
#[derive(Debug)]
pub(crate) struct Request {
    op: Op,
    data: Option<Py<PyBytes>>,
    /// `data` holds a bytes marker: decode it to objects and `restore` them.
    #[pyo3(get)]
    marked: bool,
}

#[pymethods]
impl Request {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "Python's name for the protocol attribute")]
    const __match_args__: (&'static str, &'static str) = ("op", "data");

    #[getter]
    fn op<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, self.op.name())
    }

    #[getter]
    fn data(&self, py: Python<'_>) -> Option<Py<PyBytes>> {
        self.data.as_ref().map(|data| data.clone_ref(py))
    }

    fn __repr__(&self) -> String {
        format!("Request(op={:?})", self.op.name())
    }
}

/// Any other message, given back as it came: the caller decides it the slow way.
#[pyclass(frozen, module = "openenv._rust")]
#[derive(Debug)]
pub(crate) struct Irregular {
    #[pyo3(get)]
    raw: Py<PyBytes>,
}

#[pymethods]
impl Irregular {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "Python's name for the protocol attribute")]
    const __match_args__: (&'static str,) = ("raw",);
}

#[pyfunction]
pub(crate) fn split_request<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = message.py();
    if let Ok(bytes) = message.cast::<PyBytes>() {
        return split(py, bytes.as_bytes());
    }
    let text = message
        .cast::<PyString>()
        .map_err(|_| PyTypeError::new_err("a message is str or bytes"))?;
    match text.to_str() {
        Ok(text) => split(py, text.as_bytes()),
        // Lone surrogates: no UTF-8, so no regular message.
        Err(_) => irregular(py, text.to_string_lossy().as_bytes()),
    }
}

fn split<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match classify(text) {
        Incoming::Regular { op, data } => {
            let marked = data.is_some_and(has_marker);
            let data = data.map(|data| PyBytes::new(py, data).unbind());
            Request { op, data, marked }.into_bound_py_any(py)
        }
        Incoming::Irregular => irregular(py, text),
    }
}

fn irregular<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Irregular { raw: PyBytes::new(py, text).unbind() }.into_bound_py_any(py)
}
