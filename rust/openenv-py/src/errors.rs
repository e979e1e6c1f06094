//! The exceptions of `openenv.errors`, raised from here: the classes belong to Python.

use pyo3::import_exception;

import_exception!(openenv.errors, ConnectFailed);
import_exception!(openenv.errors, ConnectionClosed);
import_exception!(openenv.errors, EncodeError);
import_exception!(openenv.errors, LimitExceeded);
import_exception!(openenv.errors, LocalProtocolError);
import_exception!(openenv.errors, RemoteProtocolError);
import_exception!(openenv.errors, RequestTimeout);
