//! What a caller asks, written into the request's frame.

use openenv_endpoint::Op;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::json::{Encoder, Words};

/// Finished JSON.
#[pyclass(frozen, module = "openenv._rust")]
#[derive(Debug)]
pub(crate) struct Raw {
    data: Py<PyBytes>,
}

#[pymethods]
impl Raw {
    #[new]
    fn new(data: Py<PyBytes>) -> Self {
        Self { data }
    }
}

pub(crate) fn write(op: Op, payload: &Bound<'_, PyAny>, frame: &mut Vec<u8>) -> PyResult<()> {
    if op == Op::State {
        return Ok(());
    }
    if let Ok(raw) = payload.cast::<Raw>() {
        frame.extend_from_slice(raw.get().data.bind(payload.py()).as_bytes());
        return Ok(());
    }
    Encoder::new(frame, Words::REQUEST).encode(payload, "data")
}

pub(crate) fn op_from(name: &str) -> PyResult<Op> {
    Op::from_name(name)
        .filter(|op| *op != Op::Close)
        .ok_or_else(|| PyValueError::new_err(format!("no request is called {name:?}")))
}
