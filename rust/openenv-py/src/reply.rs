//! Server replies, written once: envelope and Python values into one buffer.

use openenv_proto::{ReplyKind, begin_extension, begin_reply, end_reply};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::json::{Encoder, Lossy, Segment, Words};

/// What `ext` says beside a reply's `data`: members the caller gave and what encoding lost.
type Ext<'a, 'py> = Option<&'a Bound<'py, PyDict>>;

#[pyfunction]
#[pyo3(signature = (observation, reward, done, metadata=None, *, nonfinite=false, ext=None))]
pub(crate) fn observation_reply<'py>(
    observation: &Bound<'py, PyAny>,
    reward: &Bound<'py, PyAny>,
    done: &Bound<'py, PyAny>,
    metadata: Option<&Bound<'py, PyAny>>,
    nonfinite: bool,
    ext: Ext<'_, 'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut members = vec![("observation", observation), ("reward", reward), ("done", done)];
    if let Some(metadata) = metadata
        && metadata.is_truthy()?
    {
        members.push(("metadata", metadata));
    }
    reply(observation.py(), ReplyKind::Observation, &Data::Members(&members), nonfinite, ext)
}

#[pyfunction]
#[pyo3(signature = (state, *, nonfinite=false, ext=None))]
pub(crate) fn state_reply<'py>(
    state: &Bound<'py, PyAny>,
    nonfinite: bool,
    ext: Ext<'_, 'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    reply(state.py(), ReplyKind::State, &Data::Whole(state), nonfinite, ext)
}

#[pyfunction]
#[pyo3(signature = (data, *, ext=None))]
pub(crate) fn error_reply<'py>(
    data: &Bound<'py, PyAny>,
    ext: Ext<'_, 'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    reply(data.py(), ReplyKind::Error, &Data::Whole(data), false, ext)
}

#[pyfunction]
pub(crate) fn mcp_reply<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    reply(data.py(), ReplyKind::Mcp, &Data::Whole(data), false, None)
}

/// The `data` of a reply: one value, or the members of an object.
#[derive(Debug)]
enum Data<'a, 'py> {
    Members(&'a [(&'static str, &'a Bound<'py, PyAny>)]),
    Whole(&'a Bound<'py, PyAny>),
}

fn reply<'py>(
    py: Python<'py>,
    kind: ReplyKind,
    data: &Data<'_, 'py>,
    nonfinite: bool,
    ext: Ext<'_, 'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::with_capacity(256);
    begin_reply(kind, &mut out);
    let start = out.len();
    let mut encoder = Encoder::new(&mut out, Words::REPLY);
    write_data(&mut encoder, data)?;
    let mut lossy = Vec::new();
    if nonfinite && encoder.saw_nonfinite && !encoder.used_iterator {
        out.truncate(start);
        let mut encoder = Encoder::tracing(&mut out, Words::REPLY);
        write_data(&mut encoder, data)?;
        lossy = encoder.into_lossy();
    }
    if let Some(ext) = extension(py, ext, &lossy)? {
        begin_extension(&mut out);
        Encoder::new(&mut out, Words::REPLY).encode(ext.as_any(), "ext")?;
    }
    end_reply(kind, &mut out);
    Ok(PyBytes::new(py, &out))
}

fn write_data(encoder: &mut Encoder<'_>, data: &Data<'_, '_>) -> PyResult<()> {
    let members = match data {
        Data::Whole(value) => return encoder.encode(value, ""),
        Data::Members(members) => members,
    };
    for (index, (name, value)) in members.iter().enumerate() {
        encoder.raw(if index == 0 { b"{\"" } else { b",\"" });
        encoder.raw(name.as_bytes());
        encoder.raw(b"\":");
        encoder.encode(value, name)?;
    }
    encoder.raw(b"}");
    Ok(())
}

fn extension<'py>(
    py: Python<'py>,
    given: Ext<'_, 'py>,
    lossy: &[Lossy],
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let ext = given.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
    if !lossy.is_empty() {
        let entries = lossy.iter().map(|entry| nonfinite_entry(py, entry));
        ext.set_item("nonfinite", PyList::new(py, entries.collect::<PyResult<Vec<_>>>()?)?)?;
    }
    Ok(if ext.is_empty() { None } else { Some(ext) })
}

fn nonfinite_entry<'py>(py: Python<'py>, entry: &Lossy) -> PyResult<Bound<'py, PyAny>> {
    let path = entry.path.iter().map(|segment| match segment {
        Segment::Index(index) => index.into_bound_py_any(py),
        Segment::Key(key) => key.into_bound_py_any(py),
    });
    let path = PyList::new(py, path.collect::<PyResult<Vec<_>>>()?)?;
    let word = if entry.value.is_nan() {
        "nan"
    } else if entry.value > 0.0 {
        "inf"
    } else {
        "-inf"
    };
    (path, word).into_bound_py_any(py)
}
