//! What a caller gets: its future's result, or why there is none.

use openenv_endpoint::{Cause, HandshakeError};
use pyo3::exceptions::{PyException, PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::decoder::server_error;
use crate::errors::ConnectFailed;
use crate::json::decode;

/// A future that was cancelled meanwhile stays as it is.
pub(crate) fn resolve(
    future: &Bound<'_, PyAny>,
    result: PyResult<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let py = future.py();
    let set = match result {
        Ok(value) => future.call_method1(intern!(py, "set_result"), (value,)),
        Err(error) => {
            let error = holdable(py, error).into_value(py);
            future.call_method1(intern!(py, "set_exception"), (error,))
        }
    };
    match set {
        Ok(_) => Ok(()),
        // Ctrl-C may come in here as well, and is nobody's answer.
        Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
        Err(_) if future.call_method0(intern!(py, "done"))?.is_truthy()? => Ok(()),
        Err(error) => Err(error),
    }
}

/// No future takes a `StopIteration`, which the decoder of a user's type may raise. Without another
/// error in its place nothing would end the call.
fn holdable(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyStopIteration>(py) {
        return error;
    }
    let instead = PyRuntimeError::new_err("the decoder of the answer raised StopIteration");
    instead.set_cause(py, Some(error));
    instead
}

/// The server's error that nobody asked for; fails where the text does not say one.
pub(crate) fn refusal_error(py: Python<'_>, text: &[u8]) -> PyResult<PyErr> {
    let data = decode(py, text)?.get_item(intern!(py, "data"))?;
    Ok(server_error(data.cast::<PyDict>()?))
}

pub(crate) fn connect_failed(cause: &Cause) -> PyErr {
    let status = match cause {
        Cause::Handshake(HandshakeError::Refused { status, .. }) => Some(*status),
        _ => None,
    };
    ConnectFailed::new_err((cause.to_string(), None::<String>, status))
}
