//! `ClientEndpoint`: the machine of one connection, its futures resolved from here.
//!
//! Each method locks, lets the machine work, unlocks, and only then touches Python: decoding and
//! resolving run foreign code that may call back into the same endpoint.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use openenv_endpoint::{
    Cause, ClientConfig, ClientEvent, ClientLimits, Failure, KeepaliveConfig, Limits, Op, Phase,
    RequestId, SubmitError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3::{PyTraverseError, PyVisit};

use crate::clock::{nanoseconds, now_ns, seconds};
use crate::decoder::Decoder;
use crate::entropy::{Entropy, nonce};
use crate::errors::{RequestTimeout, closed_error, submit_error};
use crate::outcome::{connect_failed, refusal_error, resolve};
use crate::payload::{self, op_from};

/// Payloads are built in a fresh buffer of this many bytes: most steps fit without growing.
const FRAME_BYTES: usize = 512;

/// What is kept with a request until it is answered.
#[derive(Debug)]
struct Call {
    future: Py<PyAny>,
    decoder: Py<Decoder>,
    timeout_s: f64,
}

#[pyclass(frozen, weakref, module = "openenv._rust")]
#[derive(Debug)]
pub(crate) struct ClientEndpoint {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    endpoint: openenv_endpoint::ClientEndpoint<Call>,
    opened: Option<Py<PyAny>>,
    /// Which request a future waits for; a handful at most.
    waiting: Vec<(usize, RequestId)>,
    /// The error the server sent unasked before it closes.
    refusal: Option<Vec<u8>>,
    ignored: Vec<String>,
    headers: Vec<(String, String)>,
}

/// Events with their payloads in the bytes that were read.
type Events<'i> = Vec<ClientEvent<'i, Call>>;

#[pymethods]
impl ClientEndpoint {
    #[new]
    #[pyo3(signature = (host, target, headers, *, max_message_bytes, ping_interval_s, ping_timeout_s))]
    fn new(
        host: String,
        target: String,
        headers: Vec<(String, String)>,
        max_message_bytes: usize,
        ping_interval_s: Option<f64>,
        ping_timeout_s: Option<f64>,
    ) -> PyResult<Self> {
        let config = ClientConfig {
            host,
            target,
            headers,
            limits: Limits::default().with_max_message_bytes(max_message_bytes),
            session_limits: ClientLimits::default(),
            keepalive: KeepaliveConfig {
                interval_ns: ping_interval_s.and_then(nanoseconds),
                timeout_ns: ping_timeout_s.and_then(nanoseconds),
            },
        };
        let endpoint = openenv_endpoint::ClientEndpoint::new(&config, nonce()?)
            .map_err(|error| crate::errors::LocalProtocolError::new_err(error.to_string()))?;
        let inner = Inner {
            endpoint,
            opened: None,
            waiting: Vec::new(),
            refusal: None,
            ignored: Vec::new(),
            headers: Vec::new(),
        };
        Ok(Self { inner: Mutex::new(inner) })
    }

    fn connect<'py>(
        &self,
        py: Python<'py>,
        opened: Py<PyAny>,
        deadline: f64,
        #[expect(unused_variables, reason = "all methods take the time, so that all can use it")]
        now: f64,
    ) -> Option<Bound<'py, PyBytes>> {
        let mut inner = self.lock();
        inner.opened = Some(opened);
        inner.endpoint.connect(nanoseconds(deadline).unwrap_or(u64::MAX));
        inner.output(py)
    }

    #[expect(clippy::too_many_arguments, reason = "one crossing a request carries all of it")]
    fn request<'py>(
        &self,
        py: Python<'py>,
        op: &str,
        payload: &Bound<'py, PyAny>,
        future: Py<PyAny>,
        decoder: Py<Decoder>,
        deadline: f64,
        now: f64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.submit(op, payload, future, decoder, deadline, now)? {
            Submitted::Frame(frame) => Ok(Some(PyBytes::new(py, &frame))),
            Submitted::Queued => Ok(None),
            Submitted::NotOpen => Err(self.ending(py)),
        }
    }

    fn abandon(&self, future: &Bound<'_, PyAny>) {
        let key = future.as_ptr() as usize;
        let mut inner = self.lock();
        let Some(place) = inner.waiting.iter().position(|(waiting, _)| *waiting == key) else {
            return;
        };
        let (_, id) = inner.waiting.swap_remove(place);
        let call = inner.endpoint.abandon(id);
        drop(inner); // before the call's Python objects are
        drop(call);
    }

    fn receive<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        now: f64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let owned: Vec<u8>;
        let bytes = if let Ok(bytes) = data.cast::<PyBytes>() {
            bytes.as_bytes()
        } else {
            owned = data.extract()?; // a buffer that may change under us
            &owned
        };
        self.drive(py, |endpoint, events| {
            endpoint.receive(bytes, now_ns(now), &mut Entropy, events);
        })
    }

    fn tick<'py>(&self, py: Python<'py>, now: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.drive(py, |endpoint, events| endpoint.tick(now_ns(now), &mut Entropy, events))
    }

    fn next_timeout(&self) -> Option<f64> {
        self.lock().endpoint.next_timeout().map(seconds)
    }

    fn close<'py>(
        &self,
        py: Python<'py>,
        code: u16,
        now: f64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.drive(py, |endpoint, events| {
            endpoint.close(code, now_ns(now), &mut Entropy, events);
        })
    }

    #[pyo3(signature = (error=None))]
    #[expect(unused_variables, reason = "the transport's own words add nothing to `ended`")]
    fn lost(&self, py: Python<'_>, error: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.drive(py, openenv_endpoint::ClientEndpoint::eof).map(drop)
    }

    fn take_ignored(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().ignored)
    }

    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let phase = self.lock().endpoint.phase();
        PyString::intern(py, phase_name(phase))
    }

    #[getter]
    fn should_disconnect(&self) -> bool {
        self.lock().endpoint.phase() == Phase::Closed
    }

    #[getter]
    fn owed(&self) -> usize {
        self.lock().endpoint.owed()
    }

    #[getter]
    fn outstanding(&self) -> usize {
        self.lock().waiting.len()
    }

    #[getter]
    fn closed_error(&self, py: Python<'_>) -> Option<PyErr> {
        let over = {
            let inner = self.lock();
            inner.refusal.is_some() || inner.endpoint.cause().is_some()
        };
        over.then(|| self.ending(py))
    }

    #[getter]
    fn close_code(&self) -> Option<u16> {
        self.lock().endpoint.cause().map(Cause::close_code)
    }

    #[getter]
    fn close_reason(&self) -> String {
        self.lock().endpoint.cause().map(ToString::to_string).unwrap_or_default()
    }

    #[getter]
    fn peer_max_message_bytes(&self) -> Option<usize> {
        self.lock().endpoint.peer_max_message_bytes()
    }

    #[getter]
    fn response_headers(&self) -> Vec<(String, String)> {
        self.lock().headers.clone()
    }

    fn __repr__(&self) -> String {
        format!("<ClientEndpoint {}>", phase_name(self.lock().endpoint.phase()))
    }

    /// Futures hold tasks, tasks may hold the driver, and the driver holds this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(inner) = self.inner.try_lock() {
            visit.call(&inner.opened)?;
            for call in inner.endpoint.tags() {
                visit.call(&call.future)?;
                visit.call(&call.decoder)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let (opened, mut events) = (self.lock().opened.take(), Vec::new());
        self.lock().endpoint.eof(&mut events);
        drop((opened, events));
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Submitted {
    /// It is to be sent now.
    Frame(Vec<u8>),
    /// It is sent in its turn.
    Queued,
    /// Nothing was taken.
    NotOpen,
}

/// What an endpoint wants after it was fed.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Fed {
    /// To be sent now.
    pub(crate) output: Vec<u8>,
    /// The transport is to be closed.
    pub(crate) is_over: bool,
}

impl ClientEndpoint {
    #[expect(clippy::too_many_arguments, reason = "one crossing a request carries all of it")]
    /// Takes a request; `Err` where nothing was taken and the caller is at fault.
    pub(crate) fn submit(
        &self,
        op: &str,
        payload: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        decoder: Py<Decoder>,
        deadline: f64,
        now: f64,
    ) -> PyResult<Submitted> {
        let op = op_from(op)?;
        let mut frame = Vec::with_capacity(FRAME_BYTES);
        let begun = self.lock().endpoint.begin(op, &mut frame);
        payload::write(op, payload, &mut frame)?;
        let key = future.as_ptr() as usize;
        let call = Call { future, decoder, timeout_s: deadline - now };
        let mut inner = self.lock();
        if inner.refusal.is_some() {
            return Ok(Submitted::NotOpen);
        }
        let deadline_ns = nanoseconds(deadline);
        match inner.endpoint.submit(begun, frame, deadline_ns, call, &mut Entropy) {
            Ok((id, frame)) => {
                inner.waiting.push((key, id));
                Ok(frame.map_or(Submitted::Queued, Submitted::Frame))
            }
            Err(SubmitError::NotOpen) => Ok(Submitted::NotOpen),
            Err(error) => Err(submit_error(&error)),
        }
    }

    /// Does what `receive` does, for a socket that is read from here.
    #[cfg(target_os = "linux")]
    pub(crate) fn feed(&self, py: Python<'_>, bytes: &[u8], now: f64) -> PyResult<Fed> {
        let mut events = Vec::new();
        let fed = {
            let mut inner = self.lock();
            inner.endpoint.receive(bytes, now_ns(now), &mut Entropy, &mut events);
            let output = std::mem::take(inner.endpoint.output());
            Fed { output, is_over: inner.endpoint.phase() == Phase::Closed }
        };
        self.deliver(py, events)?;
        Ok(fed)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the machine work under the lock, then tells Python what happened.
    fn drive<'py, 'i>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&mut openenv_endpoint::ClientEndpoint<Call>, &mut Events<'i>),
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut events = Vec::new();
        let output = {
            let mut inner = self.lock();
            work(&mut inner.endpoint, &mut events);
            inner.output(py)
        };
        self.deliver(py, events)?;
        Ok(output)
    }

    /// Tells Python what happened, in order. The lock is free.
    fn deliver(&self, py: Python<'_>, events: Events<'_>) -> PyResult<()> {
        for event in events {
            match event {
                ClientEvent::Answer { tag, op, payload } => self.answer(py, &tag, op, &payload)?,
                ClientEvent::Failed { tag, op, failure } => self.fail(py, &tag, op, failure)?,
                ClientEvent::Opened { headers } => self.open(py, headers)?,
                ClientEvent::Refused { payload } => self.refuse(payload),
                ClientEvent::Closed => self.closed(py)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn answer(&self, py: Python<'_>, call: &Call, op: Op, payload: &[u8]) -> PyResult<()> {
        self.forget(call);
        let decoded = call.decoder.get().decode(py, op, payload);
        if !decoded.ignored.is_empty() {
            self.lock().ignored.extend(decoded.ignored);
        }
        resolve(call.future.bind(py), decoded.result)
    }

    fn fail(&self, py: Python<'_>, call: &Call, op: Op, failure: Failure) -> PyResult<()> {
        self.forget(call);
        let error = match failure {
            Failure::Closed => self.ending(py),
            Failure::Expired => RequestTimeout::new_err((op.name(), call.timeout_s)),
        };
        resolve(call.future.bind(py), Err(error))
    }

    fn open(&self, py: Python<'_>, headers: Vec<(String, String)>) -> PyResult<()> {
        let opened = {
            let mut inner = self.lock();
            inner.headers =
                headers.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
            if let Some(bytes) = inner.told_max_message_bytes() {
                inner.endpoint.set_peer_max_message_bytes(bytes);
            }
            inner.opened.take()
        };
        match opened {
            Some(opened) => resolve(opened.bind(py), Ok(py.None().into_bound(py))),
            None => Ok(()),
        }
    }

    fn refuse(&self, payload: Cow<'_, [u8]>) {
        self.lock().refusal = Some(payload.into_owned());
    }

    fn closed(&self, py: Python<'_>) -> PyResult<()> {
        let (opened, error) = {
            let mut inner = self.lock();
            let error = inner.endpoint.cause().map(connect_failed);
            (inner.opened.take(), error)
        };
        match (opened, error) {
            (Some(opened), Some(error)) => resolve(opened.bind(py), Err(error)),
            _ => Ok(()),
        }
    }

    /// Why no request is taken: the server's own words if it had any.
    fn ending(&self, py: Python<'_>) -> PyErr {
        let (refusal, error) = {
            let inner = self.lock();
            (inner.refusal.clone(), closed_error(inner.endpoint.cause()))
        };
        match refusal.map(|text| refusal_error(py, &text)) {
            Some(Ok(refusal)) => refusal,
            Some(Err(_)) | None => error,
        }
    }

    fn forget(&self, call: &Call) {
        let key = call.future.as_ptr() as usize;
        self.lock().waiting.retain(|(waiting, _)| *waiting != key);
    }
}

impl Inner {
    /// Bytes never trigger the garbage collector, so this may run under the lock.
    fn output<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let output = self.endpoint.output();
        if output.is_empty() {
            return None;
        }
        let bytes = PyBytes::new(py, output);
        output.clear();
        Some(bytes)
    }

    fn told_max_message_bytes(&self) -> Option<usize> {
        let told = self.headers.iter().find(|(name, _)| name == "openenv-max-message-bytes")?;
        told.1.trim().parse().ok()
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Idle => "idle",
        Phase::Connecting => "connecting",
        Phase::Open => "open",
        Phase::Closing => "closing",
        Phase::Closed => "closed",
    }
}
