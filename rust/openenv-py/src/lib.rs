//! `openenv._rust`.
use pyo3::prelude::*;

#[pymodule]
mod _rust {}
