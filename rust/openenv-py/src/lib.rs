//! `openenv._rust`: the protocol core as a Python extension module.
//!
//! The only crate that names `pyo3`. Everything here is translation: Python objects to and from
//! JSON, asyncio futures to and from the machine in `openenv-endpoint`, its errors to the classes
//! of `openenv.errors`.
#![expect(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "the binding lives on std; only the pure crates are no_std"
)]

use pyo3::prelude::*;

mod client;
mod clock;
mod decoder;
mod entropy;
mod errors;
#[cfg(target_os = "linux")]
mod hub;
mod json;
mod outcome;
mod payload;
mod reply;
mod request;
#[cfg(target_os = "linux")]
mod transport;

#[pymodule]
mod _rust {
    #[pymodule_export]
    use crate::client::ClientEndpoint;
    #[pymodule_export]
    use crate::decoder::Decoder;
    #[pymodule_export]
    use crate::entropy::forget_entropy;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::hub::Hub;
    #[pymodule_export]
    use crate::json::{json_decode, json_encode};
    #[pymodule_export]
    use crate::payload::Raw;
    #[pymodule_export]
    use crate::reply::{error_reply, mcp_reply, observation_reply, state_reply};
    #[pymodule_export]
    use crate::request::{Irregular, Request, split_request};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::transport::Transport;
}
