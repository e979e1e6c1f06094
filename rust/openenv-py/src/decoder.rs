//! How an answer becomes the result of a call.
//!
//! The fast way splits the text once and decodes each part straight from its slice: scalars here,
//! the observation by its type's own JSON parser. The slow way decodes the whole text to objects
//! first; it is taken when something has to be put back that JSON could not say (`ext.nonfinite`,
//! bytes markers), or when only Python's `json` reads the text.

use openenv_proto::{Envelope, Observation, Op, ReplyKind, splice, split_reply};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString, PyType};

use crate::errors::RemoteProtocolError;
use crate::json::{decode, has_marker, json_encode_bytes, restore};

/// What an answer's `data` is made into.
#[pyclass(frozen, module = "openenv._rust")]
#[derive(Debug)]
pub(crate) struct Decoder {
    shape: Shape,
    convert: Convert,
}

#[derive(Debug)]
enum Shape {
    Data,
    Result { step_result: ResultClass, lift: Lift },
    State,
}

/// `StepResult`, a dataclass. Its `__init__` would only assign what is assigned here, at three
/// times the price.
#[derive(Debug)]
struct ResultClass(Py<PyType>);

impl ResultClass {
    fn make<'py>(
        &self,
        observation: &Bound<'py, PyAny>,
        reward: &Bound<'py, PyAny>,
        done: &Bound<'py, PyAny>,
        metadata: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = observation.py();
        let class = self.0.bind(py);
        let result = class.call_method1(intern!(py, "__new__"), (class,))?;
        result.setattr(intern!(py, "observation"), observation)?;
        result.setattr(intern!(py, "reward"), reward)?;
        result.setattr(intern!(py, "done"), done)?;
        result.setattr(intern!(py, "metadata"), metadata)?;
        Ok(result)
    }
}

/// The type's own parsers; both `None` for plain dicts.
#[derive(Debug)]
struct Convert {
    from_json: Option<Py<PyAny>>,
    from_objects: Option<Py<PyAny>>,
}

/// Top-level members that the observation's type has as fields.
#[derive(Clone, Copy, Debug, Default)]
struct Lift {
    done: bool,
    reward: bool,
    metadata: bool,
}

#[pymethods]
impl Decoder {
    #[staticmethod]
    fn data() -> Self {
        Self { shape: Shape::Data, convert: Convert { from_json: None, from_objects: None } }
    }

    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "a sequence is extracted, not borrowed")]
    #[pyo3(signature = (step_result, from_json=None, from_objects=None, lift=Vec::new()), text_signature = "(step_result, from_json=None, from_objects=None, lift=())")]
    fn result(
        step_result: Py<PyType>,
        from_json: Option<Py<PyAny>>,
        from_objects: Option<Py<PyAny>>,
        lift: Vec<String>,
    ) -> PyResult<Self> {
        let lift = Lift::from_names(&lift)?;
        let shape = Shape::Result { step_result: ResultClass(step_result), lift };
        Ok(Self { shape, convert: Convert { from_json, from_objects } })
    }

    #[staticmethod]
    #[pyo3(signature = (from_json=None, from_objects=None))]
    fn state(from_json: Option<Py<PyAny>>, from_objects: Option<Py<PyAny>>) -> Self {
        Self { shape: Shape::State, convert: Convert { from_json, from_objects } }
    }
}

/// A decoded answer and what the server said beside it.
#[derive(Debug)]
pub(crate) struct Decoded<'py> {
    /// The call's result, or the exception it raises.
    pub(crate) result: PyResult<Bound<'py, PyAny>>,
    /// Reset keys the server ignored.
    pub(crate) ignored: Vec<String>,
}

impl Decoder {
    /// Decodes the answer to `op`. An answer of another kind breaks the order of answers: no
    /// later one could be trusted, so it is the peer's fault and not a result.
    pub(crate) fn decode<'py>(&self, py: Python<'py>, op: Op, text: &[u8]) -> Decoded<'py> {
        match split_reply(text) {
            Ok((envelope, _)) if !answers(op, envelope.kind.as_str()) => {
                let error = wrong_kind(op, envelope.kind.as_str());
                Decoded { result: Err(error), ignored: Vec::new() }
            }
            Ok((envelope, members)) if envelope.ext.is_none() && !has_marker(text) => {
                Decoded { result: self.fast(py, &envelope, &members), ignored: Vec::new() }
            }
            _ => match Answer::from_objects(py, op, text) {
                Ok(answer) => Decoded { result: self.slow(&answer), ignored: answer.ignored },
                Err(error) => Decoded { result: Err(error), ignored: Vec::new() },
            },
        }
    }

    fn fast<'py>(
        &self,
        py: Python<'py>,
        envelope: &Envelope<'_>,
        members: &Observation<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let data = envelope.data.unwrap_or(b"{}");
        if envelope.kind.reply() == Some(ReplyKind::Error) {
            return Err(answered_error(&readable(decode(py, data))?));
        }
        match &self.shape {
            Shape::Data => readable(decode(py, data)),
            Shape::State => self.convert.json(py, data),
            Shape::Result { step_result, lift } => {
                if !data.starts_with(b"{") {
                    return Err(not_an_object());
                }
                let observation = self.observation(py, members, *lift)?;
                let reward = scalar(py, members.reward)?;
                let done = done(py, members.done)?;
                let metadata = scalar(py, members.metadata)?;
                step_result.make(&observation, &reward, &done, &metadata)
            }
        }
    }

    fn observation<'py>(
        &self,
        py: Python<'py>,
        members: &Observation<'_>,
        lift: Lift,
    ) -> PyResult<Bound<'py, PyAny>> {
        let observation = members.observation.unwrap_or(b"{}");
        let lifted = lift.members(members);
        if lifted.is_empty() || self.convert.from_json.is_none() {
            return self.convert.json(py, observation);
        }
        let mut whole = Vec::with_capacity(observation.len() + 64);
        match splice(observation, &lifted, &mut whole) {
            Ok(()) => self.convert.json(py, &whole),
            // Not an object: its type's own parser says so best.
            Err(_) => self.convert.json(py, observation),
        }
    }

    fn slow<'py>(&self, answer: &Answer<'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = answer.data.py();
        if answer.is_error {
            return Err(answered_error(&answer.data));
        }
        match &self.shape {
            Shape::Data => Ok(answer.data.clone()),
            Shape::State => self.convert.objects(&answer.data),
            Shape::Result { step_result, lift } => {
                let data = answer.data.cast::<PyDict>().map_err(|_| not_an_object())?;
                let member = |name: &Bound<'py, PyString>| data.get_item(name);
                let none = || py.None().into_bound(py);
                let reward = member(intern!(py, "reward"))?.unwrap_or_else(none);
                let done = member(intern!(py, "done"))?
                    .unwrap_or_else(|| PyBool::new(py, false).to_owned().into_any());
                let metadata = member(intern!(py, "metadata"))?.unwrap_or_else(none);
                let observation = member(intern!(py, "observation"))?
                    .unwrap_or_else(|| PyDict::new(py).into_any());
                if self.convert.from_json.is_some() {
                    lift.set_members(&observation, data)?;
                }
                let observation = self.convert.objects(&observation)?;
                step_result.make(&observation, &reward, &done, &metadata)
            }
        }
    }
}

impl Convert {
    fn json<'py>(&self, py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match &self.from_json {
            None => readable(decode(py, text)),
            Some(convert) => convert.bind(py).call1((PyBytes::new(py, text),)),
        }
    }

    fn objects<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        match (&self.from_objects, &self.from_json) {
            (Some(convert), _) => convert.bind(py).call1((value,)),
            (None, Some(convert)) => convert.bind(py).call1((json_encode_bytes(value)?,)),
            (None, None) => Ok(value.clone()),
        }
    }
}

impl Lift {
    fn from_names(names: &[String]) -> PyResult<Self> {
        let mut lift = Self::default();
        for name in names {
            match name.as_str() {
                "done" => lift.done = true,
                "reward" => lift.reward = true,
                "metadata" => lift.metadata = true,
                other => {
                    let text = format!("lift takes done, reward and metadata, not {other:?}");
                    return Err(PyValueError::new_err(text));
                }
            }
        }
        Ok(lift)
    }

    fn members<'a>(self, found: &Observation<'a>) -> Vec<(&'static str, &'a [u8])> {
        let wanted = [
            (self.done, "done", found.done),
            (self.reward, "reward", found.reward),
            (self.metadata, "metadata", found.metadata),
        ];
        let lifted = wanted.into_iter().filter(|(lift, ..)| *lift);
        lifted.filter_map(|(_, name, value)| value.map(|value| (name, value))).collect()
    }

    fn set_members(self, observation: &Bound<'_, PyAny>, data: &Bound<'_, PyDict>) -> PyResult<()> {
        let Ok(observation) = observation.cast::<PyDict>() else { return Ok(()) };
        let wanted = [(self.done, "done"), (self.reward, "reward"), (self.metadata, "metadata")];
        for (_, name) in wanted.into_iter().filter(|(lift, _)| *lift) {
            if let Some(value) = data.get_item(name)? {
                observation.set_item(name, value)?;
            }
        }
        Ok(())
    }
}

fn answers(op: Op, kind: &str) -> bool {
    let expected = match op {
        Op::Mcp => ReplyKind::Mcp,
        Op::State => ReplyKind::State,
        Op::Close | Op::Reset | Op::Step => ReplyKind::Observation,
    };
    let kind = ReplyKind::from_name(kind);
    kind == Some(expected) || kind == Some(ReplyKind::Error)
}

fn wrong_kind(op: Op, kind: &str) -> PyErr {
    let op = op.name();
    RemoteProtocolError::new_err(format!("the server's answer to {op} has the type {kind:?}"))
}

/// An answer as objects, with everything put back that JSON could not say.
#[derive(Debug)]
struct Answer<'py> {
    is_error: bool,
    data: Bound<'py, PyAny>,
    ignored: Vec<String>,
}

impl<'py> Answer<'py> {
    fn from_objects(py: Python<'py>, op: Op, text: &[u8]) -> PyResult<Self> {
        let whole = readable(decode(py, text))?;
        let whole = whole.cast_into::<PyDict>().map_err(|_| {
            RemoteProtocolError::new_err("the server's answer is not a JSON object")
        })?;
        let data =
            whole.get_item(intern!(py, "data"))?.unwrap_or_else(|| PyDict::new(py).into_any());
        let data = restore(&data)?;
        let kind = whole.get_item(intern!(py, "type"))?;
        let kind: String = kind.and_then(|kind| kind.extract().ok()).unwrap_or_default();
        if !answers(op, &kind) {
            return Err(wrong_kind(op, &kind));
        }
        let is_error = kind == "error";
        let mut answer = Self { is_error, data, ignored: Vec::new() };
        if let Some(ext) = whole.get_item(intern!(py, "ext"))?
            && let Ok(ext) = ext.cast::<PyDict>()
        {
            answer.apply(ext)?;
        }
        Ok(answer)
    }

    fn apply(&mut self, ext: &Bound<'py, PyDict>) -> PyResult<()> {
        let py = ext.py();
        if let Some(ignored) = ext.get_item(intern!(py, "ignored"))? {
            self.ignored = ignored.extract().unwrap_or_default();
        }
        if let Some(exception) = ext.get_item(intern!(py, "exception"))?
            && let Ok(data) = self.data.cast::<PyDict>()
        {
            data.set_item(intern!(py, "exception"), exception)?;
        }
        if let Some(entries) = ext.get_item(intern!(py, "nonfinite"))?
            && let Ok(entries) = entries.cast::<PyList>()
        {
            for entry in entries {
                put_back(&self.data, &entry)?;
            }
        }
        Ok(())
    }
}

/// Sets one non-finite float where the server wrote `null`. An entry that points nowhere is
/// passed over: the value it speaks of is not there to be wrong.
fn put_back(data: &Bound<'_, PyAny>, entry: &Bound<'_, PyAny>) -> PyResult<()> {
    let (Ok(path), Ok(word)) = (entry.get_item(0), entry.get_item(1)) else { return Ok(()) };
    let (Ok(path), Ok(word)) = (path.cast_into::<PyList>(), word.extract::<String>()) else {
        return Ok(());
    };
    let value = match word.as_str() {
        "nan" => f64::NAN,
        "inf" => f64::INFINITY,
        "-inf" => f64::NEG_INFINITY,
        _ => return Ok(()),
    };
    let mut place = data.clone();
    let Some(last) = path.len().checked_sub(1) else { return Ok(()) };
    for index in 0..last {
        match place.get_item(path.get_item(index)?) {
            Ok(inner) => place = inner,
            Err(_) => return Ok(()),
        }
    }
    let _ = place.set_item(path.get_item(last)?, value);
    Ok(())
}

fn scalar<'py>(py: Python<'py>, text: Option<&[u8]>) -> PyResult<Bound<'py, PyAny>> {
    match text {
        None | Some(b"null") => Ok(py.None().into_bound(py)),
        Some(text) => readable(decode(py, text)),
    }
}

fn done<'py>(py: Python<'py>, text: Option<&[u8]>) -> PyResult<Bound<'py, PyAny>> {
    match text {
        None | Some(b"false") => Ok(PyBool::new(py, false).to_owned().into_any()),
        Some(b"true") => Ok(PyBool::new(py, true).to_owned().into_any()),
        Some(text) => readable(decode(py, text)),
    }
}

fn not_an_object() -> PyErr {
    RemoteProtocolError::new_err("the data of the server's answer is not a JSON object")
}

/// What Python cannot read (broken, too deep, a number too long) is the peer's fault.
fn readable(decoded: PyResult<Bound<'_, PyAny>>) -> PyResult<Bound<'_, PyAny>> {
    decoded.map_err(|error| {
        RemoteProtocolError::new_err(format!("the server's answer is not JSON: {error}"))
    })
}

fn answered_error(data: &Bound<'_, PyAny>) -> PyErr {
    if data.is_instance_of::<PyDict>() { server_error(data) } else { not_an_object() }
}

/// `openenv.errors.server_error(data)`.
pub(crate) fn server_error(data: &Bound<'_, PyAny>) -> PyErr {
    static SERVER_ERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = SERVER_ERROR.import(data.py(), "openenv.errors", "server_error");
    match make.and_then(|make| make.call1((data,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
