//! Python objects to JSON text, in one pass, into a buffer the caller owns.
//!
//! The JSON types are written here; every other value is given to `openenv._plain.plain`, and
//! what comes back is encoded in its place. Errors collect their path on the way out, so that the
//! way in pays nothing for it. Python code can run in between (a user's `tolist`, a property), so
//! no lock may be held by the caller and containers are re-checked as they are walked.

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{ffi, intern};

use super::path::{Failure, Lossy, Segment, raise, refused, within};
use super::scalar::{write_code_unit, write_escaped, write_float, write_int, write_string};

/// Values may nest this deep. Precedent: pydantic-core and jiter stop at 200 too.
const MAX_DEPTH: usize = 200;

/// Where upstream's two writers of JSON differ: its client is `json`, its server pydantic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// Non-finite floats are `NaN` and `Infinity`, which `json` reads, instead of `null`.
    nonfinite: bool,
    none_key: &'static [u8],
}

impl Words {
    /// A client's requests: `json.dumps`.
    pub(crate) const REQUEST: Self = Self { nonfinite: true, none_key: b"\"null\"" };
    /// Any other JSON text: `json`, but no token that only `json` reads.
    pub(crate) const JSON: Self = Self { nonfinite: false, none_key: b"\"null\"" };
    /// A server's replies: pydantic.
    pub(crate) const REPLY: Self = Self { nonfinite: false, none_key: b"\"None\"" };
}

/// Writes values into `out`.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    words: Words,
    depth: usize,
    /// Non-finite floats were written as `null`.
    pub(crate) saw_nonfinite: bool,
    /// An iterator was used up, so that the value cannot be written again.
    pub(crate) used_iterator: bool,
    /// Where they were; filled only where asked for.
    trace: Option<(Vec<Segment>, Vec<Lossy>)>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, words: Words) -> Self {
        Self { out, words, depth: 0, saw_nonfinite: false, used_iterator: false, trace: None }
    }

    /// Keeps the path of every float that is written as `null`: slower, so only for a second pass.
    pub(crate) fn tracing(out: &'a mut Vec<u8>, words: Words) -> Self {
        Self { trace: Some((Vec::new(), Vec::new())), ..Self::new(out, words) }
    }

    pub(crate) fn into_lossy(self) -> Vec<Lossy> {
        self.trace.map(|(_, lossy)| lossy).unwrap_or_default()
    }

    /// Appends text that is JSON already.
    pub(crate) fn raw(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    /// Appends `value`; `root` names it in the path of an error.
    pub(crate) fn encode(&mut self, value: &Bound<'_, PyAny>, root: &str) -> PyResult<()> {
        if !root.is_empty() {
            self.enter_with(|| Segment::Key(root.to_owned()));
        }
        let written = self.value(value);
        if !root.is_empty() {
            self.leave();
        }
        written.map_err(|failure| raise(failure, root))
    }

    fn value(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
        if value.is_exact_instance_of::<PyString>() {
            self.string(value.cast::<PyString>().map_err(PyErr::from)?)
        } else if value.is_exact_instance_of::<PyFloat>() {
            self.float(value.extract()?);
            Ok(())
        } else if value.is_exact_instance_of::<PyInt>() {
            self.int(value)
        } else if value.is_exact_instance_of::<PyBool>() {
            let word: &[u8] = if value.is_truthy()? { b"true" } else { b"false" };
            self.out.extend_from_slice(word);
            Ok(())
        } else if value.is_none() {
            self.out.extend_from_slice(b"null");
            Ok(())
        } else {
            self.container(value)
        }
    }

    fn container(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
        if self.depth == MAX_DEPTH {
            return Err(refused(format!("a value nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let written = self.container_inside(value);
        self.depth -= 1;
        written
    }

    fn container_inside(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            self.dict(dict)
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            self.list(list)
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            self.items(tuple.iter_borrowed().map(|item| Ok(item.to_owned())))
        } else {
            self.subclass(value)
        }
    }

    /// Subclasses of the JSON types are encoded as their base, as `json` does; an `Enum` is not
    /// its base but its value, which `json` agrees with.
    fn subclass(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
        if let Ok(text) = value.cast::<PyString>() {
            self.string(text)
        } else if value.is_instance_of::<PyInt>() {
            self.int(value)
        } else if value.is_instance_of::<PyFloat>() {
            self.float(value.extract()?);
            Ok(())
        } else if value.is_instance_of::<PyDict>() {
            let items = value.call_method0(intern!(value.py(), "items"))?;
            self.pairs(&items)
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            self.items(value.try_iter()?)
        } else {
            self.used_iterator |= value.hasattr(intern!(value.py(), "__next__"))?;
            let plain = plain("plain", value)?;
            self.value(&plain)
        }
    }

    fn list(&mut self, list: &Bound<'_, PyList>) -> Result<(), Failure> {
        self.items(list.iter().map(Ok))
    }

    fn items<'py, I>(&mut self, items: I) -> Result<(), Failure>
    where
        I: Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    {
        self.out.push(b'[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.enter_with(|| Segment::Index(index));
            let written = self.value(&item?);
            self.leave();
            written.map_err(|failure| within(failure, || Segment::Index(index)))?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>) -> Result<(), Failure> {
        let length = dict.len();
        let mut position: ffi::Py_ssize_t = 0;
        let mut first = true;
        self.out.push(b'{');
        while let Some((key, value)) = next_pair(dict, &mut position) {
            self.pair(&key, &value, first)?;
            first = false;
            if dict.len() != length {
                let text = "a dict changed its size while it was encoded";
                return Err(Failure::Raised(PyRuntimeError::new_err(text)));
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn pairs(&mut self, items: &Bound<'_, PyAny>) -> Result<(), Failure> {
        self.out.push(b'{');
        for (index, pair) in items.try_iter()?.enumerate() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            self.pair(&key, &value, index == 0)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn pair(
        &mut self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        first: bool,
    ) -> Result<(), Failure> {
        if !first {
            self.out.push(b',');
        }
        let segment = || Segment::Key(shown(key));
        self.key(key).map_err(|failure| within(failure, segment))?;
        self.out.push(b':');
        self.enter_with(segment);
        let written = self.value(value);
        self.leave();
        written.map_err(|failure| within(failure, segment))
    }

    /// Keys are strings; numbers, booleans and `None` are written as `json` writes them.
    fn key(&mut self, key: &Bound<'_, PyAny>) -> Result<(), Failure> {
        if let Ok(text) = key.cast_exact::<PyString>() {
            return self.string(text);
        }
        if let Ok(number) = key.cast::<PyFloat>()
            && !number.value().is_finite()
        {
            self.out.push(b'"');
            self.out.extend_from_slice(nonfinite_word(number.value()));
            self.out.push(b'"');
            return Ok(());
        }
        if key.is_none() {
            self.out.extend_from_slice(self.words.none_key);
            return Ok(());
        }
        if is_number(key) {
            self.out.push(b'"');
            self.value(key)?;
            self.out.push(b'"');
            return Ok(());
        }
        if let Ok(text) = key.cast::<PyString>() {
            return self.string(text);
        }
        self.string(plain("plain_key", key)?.cast::<PyString>().map_err(PyErr::from)?)
    }

    fn string(&mut self, text: &Bound<'_, PyString>) -> Result<(), Failure> {
        if let Ok(text) = text.to_str() {
            write_string(text, self.out);
            return Ok(());
        }
        self.surrogates(text)
    }

    /// A string with lone surrogates has no UTF-8: those are escaped, the rest is not.
    fn surrogates(&mut self, text: &Bound<'_, PyString>) -> Result<(), Failure> {
        let py = text.py();
        let encoded = text.call_method1(intern!(py, "encode"), ("utf-8", "surrogatepass"))?;
        let mut rest = encoded.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
        self.out.push(b'"');
        while let Some(chunk) = rest.utf8_chunks().next() {
            write_escaped(chunk.valid().as_bytes(), self.out);
            // `surrogatepass` writes U+D800–DFFF as the three bytes ED A0–BF xx.
            rest = match rest.get(chunk.valid().len()..) {
                Some([_, middle, last, tail @ ..]) => {
                    let bits = (u16::from(middle & 0x3f) << 6) | u16::from(last & 0x3f);
                    write_code_unit(0xd000 | bits, self.out);
                    tail
                }
                _ => break,
            };
        }
        self.out.push(b'"');
        Ok(())
    }

    fn float(&mut self, value: f64) {
        if value.is_finite() {
            return write_float(value, self.out);
        }
        if self.words.nonfinite {
            return self.out.extend_from_slice(nonfinite_word(value));
        }
        self.saw_nonfinite = true;
        self.out.extend_from_slice(b"null");
        if let Some((path, lossy)) = &mut self.trace {
            lossy.push(Lossy { path: path.clone(), value });
        }
    }

    fn int(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
        if let Ok(small) = value.extract::<i64>() {
            write_int(small, self.out);
            return Ok(());
        }
        let text = int_repr(value).map_err(|_| refused("an integer of that many digits".into()))?;
        self.out.extend_from_slice(text.to_str()?.as_bytes());
        Ok(())
    }

    fn enter_with(&mut self, segment: impl FnOnce() -> Segment) {
        if let Some((path, _)) = &mut self.trace {
            path.push(segment());
        }
    }

    fn leave(&mut self) {
        if let Some((path, _)) = &mut self.trace {
            path.pop();
        }
    }
}

/// Encodes a whole value; the function of that name in `openenv._rust`.
#[pyfunction]
pub(crate) fn json_encode<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    json_encode_bytes(value)
}

/// The same for callers in Rust.
pub(crate) fn json_encode_bytes<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::with_capacity(256);
    Encoder::new(&mut out, Words::JSON).encode(value, "data")?;
    Ok(PyBytes::new(value.py(), &out))
}

#[expect(unsafe_code, reason = "pyo3's own dict iterator panics when the dict changes")]
fn next_pair<'py>(
    dict: &Bound<'py, PyDict>,
    position: &mut ffi::Py_ssize_t,
) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut key: *mut ffi::PyObject = core::ptr::null_mut();
    let mut value: *mut ffi::PyObject = core::ptr::null_mut();
    // SAFETY: `dict` is a dict, the three out-pointers are live; any position is in bounds for
    // `PyDict_Next`, which checks it against the table as it is now.
    let found = unsafe { ffi::PyDict_Next(dict.as_ptr(), position, &raw mut key, &raw mut value) };
    if found == 0 {
        return None;
    }
    let py = dict.py();
    // SAFETY: both are borrowed references that the dict holds at this moment; owned from here.
    let key = unsafe { Bound::from_borrowed_ptr(py, key) };
    // SAFETY: as above.
    let value = unsafe { Bound::from_borrowed_ptr(py, value) };
    Some((key, value))
}

/// `int.__repr__`, whatever a subclass (an `IntEnum`) says.
fn int_repr<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let int_type = value.py().get_type::<PyInt>();
    let text = int_type.call_method1(intern!(value.py(), "__repr__"), (value,))?;
    Ok(text.cast_into::<PyString>()?)
}

/// As `json` spells them.
fn nonfinite_word(value: f64) -> &'static [u8] {
    if value.is_nan() {
        b"NaN"
    } else if value > 0.0 {
        b"Infinity"
    } else {
        b"-Infinity"
    }
}

fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>()
}

/// Calls a function of `openenv._plain`.
fn plain<'py>(name: &'static str, value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Failure> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let py = value.py();
    let module =
        MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("openenv._plain")?.unbind()))?;
    module.bind(py).getattr(name)?.call1((value,)).map_err(|error| {
        if error.is_instance_of::<PyTypeError>(py) {
            refused(type_name(value))
        } else {
            Failure::Raised(error)
        }
    })
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type();
    let name = kind.qualname().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    match kind.module() {
        Ok(module) if module != "builtins" => format!("{module}.{name}"),
        _ => name,
    }
}

fn shown(key: &Bound<'_, PyAny>) -> String {
    key.str().map_or_else(|_| "?".to_owned(), |text| text.to_string_lossy().into_owned())
}
