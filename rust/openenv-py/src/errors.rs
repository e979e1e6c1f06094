//! The exceptions of `openenv.errors`, raised from here: the classes belong to Python.

use openenv_endpoint::{Cause, SubmitError};
use openenv_proto::SessionError;
use openenv_ws::{Error, Fault};
use pyo3::{PyErr, import_exception};

import_exception!(openenv.errors, ConnectFailed);
import_exception!(openenv.errors, ConnectionClosed);
import_exception!(openenv.errors, EncodeError);
import_exception!(openenv.errors, LimitExceeded);
import_exception!(openenv.errors, LocalProtocolError);
import_exception!(openenv.errors, RemoteProtocolError);
import_exception!(openenv.errors, RequestTimeout);

/// Why a request is not taken or not answered once the connection is over.
pub(crate) fn closed_error(cause: Option<&Cause>) -> PyErr {
    match cause {
        None => ConnectionClosed::new_err((1006, "the connection is not open")),
        Some(Cause::Protocol(error)) if *error != Error::UnexpectedEof => match error.fault() {
            Fault::Limit => LimitExceeded::new_err(error.to_string()),
            Fault::Local => LocalProtocolError::new_err(error.to_string()),
            Fault::Remote => RemoteProtocolError::new_err(error.to_string()),
        },
        Some(Cause::UnsolicitedAnswer) => RemoteProtocolError::new_err(
            "the server answered a request that was never made; later answers could not be trusted",
        ),
        Some(cause) => ConnectionClosed::new_err((cause.close_code(), cause.to_string())),
    }
}

/// Why a request was not taken by an open connection.
pub(crate) fn submit_error(error: &SubmitError) -> PyErr {
    match error {
        SubmitError::TooLong { bytes, limit } => {
            LimitExceeded::new_err((error.to_string(), *bytes, *limit))
        }
        SubmitError::Session(SessionError::QueueFull { limit }) => {
            LimitExceeded::new_err((error.to_string(), limit + 1, *limit))
        }
        _ => LocalProtocolError::new_err(error.to_string()),
    }
}
